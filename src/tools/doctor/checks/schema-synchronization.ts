import { at, classOf, nameOfMember } from '../../../observe/findings/app-view.js';
import type { Check } from '../../../observe/findings/finding.js';

export const schemaSynchronization: Check = {
  name: 'schema-synchronization',
  remedy: 'set synchronize: false, and run migrations as a step of the deploy, before the start',
  look: (app) =>
    app.providers
      .filter(({ instance }) => classOf(instance) === 'DataSource')
      .filter(({ instance }) => synchronizes(at(instance, 'options')))
      .map((provider) => ({
        where: `${nameOfMember(provider)} (${provider.module})`,
        problem: 'TypeORM has synchronize: true, so several workers alter the schema at once',
      })),
};

/** Whether an app alters a shared schema. A database in the memory of each worker is not shared. */
function synchronizes(options: unknown): boolean {
  return (
    typeof at(options, 'type') === 'string' &&
    at(options, 'synchronize') === true &&
    at(options, 'database') !== ':memory:'
  );
}
