import { describeNestProject } from './support/describe-nest-project.js';

describeNestProject(12);
