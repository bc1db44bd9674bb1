import { at, classOf, nameOfMember } from '../app-view.js';
import type { Check } from '../finding.js';

export const schemaSynchronization: Check = {
  name: 'schema-synchronization',
  remedy: 'set it to false, and run migrations as a step of the deploy, before the start',
  look: (app) =>
    app.providers
      .filter(({ instance }) => classOf(instance) === 'DataSource')
      .flatMap((provider) =>
        alterings(at(provider.instance, 'options')).map((option) => ({
          where: nameOfMember(provider),
          problem: `TypeORM has ${option}: true, so several workers alter the schema at once`,
        })),
      ),
};

/** The options by which an app alters a shared schema. A database in the memory of each worker is not shared. */
function alterings(options: unknown): string[] {
  const isShared =
    typeof at(options, 'type') === 'string' && at(options, 'database') !== ':memory:';
  return ['synchronize', 'migrationsRun'].filter((name) => isShared && at(options, name) === true);
}
