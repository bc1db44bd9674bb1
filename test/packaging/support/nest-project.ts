import { readFile } from 'node:fs/promises';
import { delimiter, dirname, join } from 'node:path';
import { type CommandResult, plainEnvironment, runCommand } from '../../support/run-command.js';
import { packed } from './tarball.js';
import { ROOT, TemporaryProject } from './temporary-project.js';

/** Development packages that no test runs: each costs its download. */
const UNUSED = /eslint|prettier|oxlint|coverage|mau$|^globals$|^ts-node$|^source-map-support$/;

interface Manifest {
  readonly scripts: Readonly<Record<string, string>>;
  readonly devDependencies: Readonly<Record<string, string>>;
}

/** A project as `nest new` makes it, turned into a cluster by the steps of docs/getting-started.md. */
export class NestProject {
  #scripts: Manifest['scripts'] = {};

  private constructor(
    private readonly project: TemporaryProject,
    readonly major: 11 | 12,
  ) {}

  /** @param more packages that it needs besides. */
  static async create(major: 11 | 12, more: readonly string[] = []): Promise<NestProject> {
    const nest = new NestProject(await TemporaryProject.createEmpty(), major);
    await nest.#generate(more);
    await nest.#turnIntoCluster();
    return nest;
  }

  get directory(): string {
    return this.project.directory;
  }

  path(...segments: string[]): string {
    return this.project.path(...segments);
  }

  read(path: string): Promise<string> {
    return readFile(this.path(path), 'utf8');
  }

  write(files: Readonly<Record<string, string>>): Promise<void> {
    return this.project.write(files);
  }

  /** Runs a script of its package.json as npm does, on a Node. */
  run(script: string, node = process.execPath): Promise<CommandResult> {
    return this.#shell(this.#scripts[script]!, node);
  }

  /** Runs a command of its packages, which has to end well. */
  async command(line: string): Promise<void> {
    const { code, stdout, stderr } = await this.#shell(line, process.execPath);
    if (code !== 0) throw new Error(`${line} ended with ${code}\n${stdout}${stderr}`);
  }

  #shell(line: string, node: string): Promise<CommandResult> {
    const { PATH, HOME } = plainEnvironment();
    return runCommand('sh', ['-c', line], {
      cwd: this.directory,
      env: {
        HOME,
        PATH: [dirname(node), this.path('node_modules/.bin'), PATH].join(delimiter),
        NO_COLOR: '1',
      },
    });
  }

  remove(): Promise<void> {
    return this.project.remove();
  }

  async #generate(more: readonly string[]): Promise<void> {
    await this.project.install([`@nestjs/cli@${this.major}`], { save: false });
    await this.command(
      'nest new app --directory . --skip-git --skip-install --package-manager npm',
    );
    const manifest = JSON.parse(await this.read('package.json')) as Manifest;
    this.#scripts = manifest.scripts;
    const used = Object.entries(manifest.devDependencies).filter(([name]) => !UNUSED.test(name));
    await this.write({
      'package.json': JSON.stringify({ ...manifest, devDependencies: Object.fromEntries(used) }),
    });
    const terminus = `@nestjs/terminus@${this.major}`;
    await this.project.install([packed().path, terminus, 'prom-client', ...more]);
  }

  async #turnIntoCluster(): Promise<void> {
    await this.takePage('getting-started.md', 'void bootstrap(');
    const isCommonJs = this.major === 11;
    await this.edit('src/app.module.ts', [
      ['imports: []', 'imports: [ClusterModule.forRoot()]'],
      [/^/, "import { ClusterModule } from 'nestjs-cluster';\n"],
    ]);
    await this.edit('src/app.service.ts', [
      [/\}\s*$/, REPORT],
      [
        /^/,
        "import { CpuBound } from 'nestjs-cluster';\nimport { isMainThread } from 'node:worker_threads';\n",
      ],
    ]);
    await this.edit('src/app.controller.ts', [
      [
        /\}\s*$/,
        "  @Get('report')\n  getReport() {\n    return this.appService.report();\n  }\n}\n",
      ],
    ]);
    const extension = isCommonJs ? '' : '.js';
    await this.write({
      'src/report.spec.ts': UNIT_TEST.replaceAll('$js', extension),
      'test/cluster.e2e-spec.ts': END_TO_END_TEST.replaceAll('$js', extension),
    });
  }

  /** Writes src/main.ts, and src/app.ts where the page has one, as a page of the docs shows them. */
  async takePage(name: string, text: string): Promise<void> {
    const page = await readFile(join(ROOT, 'docs', name), 'utf8');
    const blocks = [...page.matchAll(/^```ts\n(.*?)^```/gms)].map(([, code]) => code!);
    const main = blocks.find((code) => code.includes(text));
    if (main === undefined) throw new Error(`docs/${name} has no main.ts with ${text}`);
    const app = blocks.find((code) => code.startsWith('// app.ts'));
    await this.write({
      'src/main.ts': main.replace('{ port:', "{ host: '127.0.0.1', port:"),
      ...(app && { 'src/app.ts': app }),
    });
  }

  /** Replaces what has to be there. */
  async edit(path: string, changes: readonly (readonly [string | RegExp, string])[]) {
    let text = await this.read(path);
    for (const [from, to] of changes) {
      const changed = text.replace(from, () => to);
      if (changed === text) throw new Error(`${path} has no ${String(from)}:\n${text}`);
      text = changed;
    }
    await this.write({ [path]: text });
  }
}

const REPORT = `
  @CpuBound()
  async report(): Promise<string> {
    return isMainThread ? 'event loop' : 'thread';
  }
}
`;

const UNIT_TEST = `
import { AppController } from './app.controller$js';
import { AppService } from './app.service$js';

describe('a method with @CpuBound()', () => {
  it('just runs', async () => {
    expect(await new AppController(new AppService()).getReport()).toBe('event loop');
  });
});
`;

const END_TO_END_TEST = `
import { INestApplication } from '@nestjs/common';
import { Test } from '@nestjs/testing';
import { ClusterService } from 'nestjs-cluster';
import { bootstrap } from 'nestjs-cluster/bootstrap';
import request from 'supertest';
import { AppModule } from './../src/app.module$js';

async function createApp(): Promise<INestApplication> {
  const moduleFixture = await Test.createTestingModule({ imports: [AppModule] }).compile();
  return moduleFixture.createNestApplication();
}

describe('the app with ClusterModule', () => {
  let app: INestApplication;

  beforeAll(async () => {
    app = await createApp();
    await app.init();
  });

  afterAll(() => app.close());

  it('reports the one process', async () => {
    const { body } = await request(app.getHttpServer()).get('/health').expect(200);
    expect([body.details.cluster.ready, body.details.offload.status]).toEqual([1, 'up']);
    expect(app.get(ClusterService).identity.pid).toBe(process.pid);
    const { text } = await request(app.getHttpServer()).get('/metrics').expect(200);
    expect(text).toContain('nestjs_cluster_workers_desired 1');
  });

  it('runs its @CpuBound() method on the event loop', () =>
    request(app.getHttpServer()).get('/report').expect(200).expect('event loop'));
});

describe('bootstrap()', () => {
  it('runs the whole program with workers: 0', async () => {
    const runtime = await bootstrap(createApp, { workers: 0, port: 0, host: '127.0.0.1' });
    if (runtime.role !== 'standalone') throw new Error(runtime.role);
    expect((await fetch(\`\${runtime.url}/health\`)).status).toBe(200);
    await runtime.shutdown();
  });
});
`;
