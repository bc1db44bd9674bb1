import { createRequire } from 'node:module';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { describe, expect, it } from 'vitest';
import type { Class } from '../../../../src/contract/options/module.js';
import { classAt, ExportedClasses } from '../../../../src/offload/task/exported-classes.js';
import { temporaryDirectory } from '../../../support/temporary-directory.js';

/** A file of the app. */
function fileWith(name: string, code: string): string {
  const path = join(temporaryDirectory(), name);
  writeFileSync(path, code);
  return path;
}

describe('a class of the app', () => {
  it('is found by the file that exports it, in ES modules', async () => {
    const file = pathToFileURL(
      fileWith('prices.mjs', 'export class Price {}; export default class Prices {}'),
    ).href;
    const module = (await import(file)) as Record<string, Class>;
    const classes = new ExportedClasses(async () => [file]);

    for (const [name, type] of Object.entries(module)) {
      expect(await classes.find(type)).toEqual({ file, name });
      expect(await classAt({ file, name })).toBe(type);
    }
  });

  it('is found by the file that exports it, in CommonJS', async () => {
    const file = fileWith('prices.cjs', 'exports.Price = class Price {};');
    const { Price } = createRequire(import.meta.url)(file) as { Price: Class };
    const classes = new ExportedClasses(async () => [file]);

    expect(await classes.find(Price)).toEqual({ file, name: 'Price' });
    expect(await classAt({ file, name: 'Price' })).toBe(Price);
  });

  it('is not found if no file exports it, or a file cannot be read', async () => {
    const broken = pathToFileURL(fileWith('broken.mjs', 'throw new Error("broken")')).href;
    let searches = 0;
    const classes = new ExportedClasses(async () => {
      searches += 1;
      return [broken, 'file:///gone.mjs'];
    });

    expect(await classes.find(class Local {})).toBeUndefined();
    expect(await classes.find(class Other {})).toBeUndefined();
    expect(searches).toBe(1);
    expect(await classAt({ file: broken, name: 'Local' })).toBeUndefined();
  });
});
