import { describePackage } from '../../../../test/packaging/support/describe-package.js';

describePackage('bullmq');
