import { describePackage } from '../../../../test/packaging/support/describe-package.js';

describePackage('socket.io', ['@nestjs-cluster/shared']);
