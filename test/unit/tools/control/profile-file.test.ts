import { readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { ProfileFile } from '../../../../src/tools/control/profile-file.js';
import { temporaryDirectory } from '../../../support/temporary-directory.js';

describe('the file of a profile', () => {
  it('has its name once it is whole: a command that is killed leaves no half file by it', async () => {
    const directory = temporaryDirectory();
    const path = join(directory, 'a.heapsnapshot');
    const seen: string[][] = [];
    {
      await using file = await ProfileFile.create(path);
      await file.take(
        (async function* () {
          yield Buffer.from('half');
          seen.push(readdirSync(directory));
          yield Buffer.from(' and half');
        })(),
      );
    }
    expect(seen).toEqual([['a.heapsnapshot.part']]);
    expect(readdirSync(directory)).toEqual(['a.heapsnapshot']);
    expect(readFileSync(path, 'utf8')).toBe('half and half');
    expect(statSync(path).mode & 0o777).toBe(0o600);
  });

  it('takes no name that is there, nor one that was taken meanwhile', async () => {
    const directory = temporaryDirectory();
    const path = join(directory, 'a.cpuprofile');
    const take = async () => {
      await using file = await ProfileFile.create(path);
      await file.take(
        (async function* () {
          yield Buffer.from('mine');
          writeFileSync(path, 'theirs');
        })(),
      );
    };
    await expect(take()).rejects.toThrow('it exists already');
    await expect(take()).rejects.toThrow('it exists already');
    expect(readFileSync(path, 'utf8')).toBe('theirs');
    expect(readdirSync(directory)).toEqual(['a.cpuprofile']);
  });

  it('says what to do with what a killed command has left', async () => {
    const path = join(temporaryDirectory(), 'a.heapsnapshot');
    writeFileSync(`${path}.part`, 'half');
    await expect(ProfileFile.create(path)).rejects.toThrow(
      `cannot write ${path}.part: it exists already; remove it, or name another one by --output`,
    );
  });

  it('is not there if what it was to hold ends in the middle', async () => {
    const directory = temporaryDirectory();
    const take = async () => {
      await using file = await ProfileFile.create(join(directory, 'a.heapprofile'));
      await file.take(
        (async function* () {
          yield Buffer.from('half');
          throw new Error('the worker ended');
        })(),
      );
    };
    await expect(take()).rejects.toThrow('nothing is left of the file');
    expect(readdirSync(directory)).toEqual([]);
  });
});
