import { type ChildProcessWithoutNullStreams, execFile, spawn } from 'node:child_process';
import { existsSync } from 'node:fs';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { text } from 'node:stream/consumers';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { GO_CACHE } from '../../support/program.ts';
import type { ClientOutput, ClientTask } from './client-protocol.ts';
import type { DeviceFlowPrompt } from './device-login.ts';
import type { ClientName } from './matrix.ts';

const PYTHON_PACKAGES = '/usr/lib/python3/dist-packages';
const GO_PACKAGES = '/usr/share/gocode';

/** How a client is started. */
interface Program {
  readonly command: string;
  readonly script?: string;
  /** The environment variable with the file of a trusted CA. */
  readonly trust: string;
  /** The files that it needs from packages of the operating system. */
  readonly needs?: readonly string[];
}

const file = (name: string) => join(import.meta.dirname, name);
const node = { command: process.execPath, trust: 'NODE_EXTRA_CA_CERTS' };
const python = { command: '/usr/bin/python3', trust: 'REQUESTS_CA_BUNDLE' };

const PROGRAMS: Readonly<Record<ClientName, Program>> = {
  'openid-client': { ...node, script: fileURLToPath(import.meta.resolve('./openid-client.ts')) },
  oauth4webapi: { ...node, script: fileURLToPath(import.meta.resolve('./oauth4webapi.ts')) },
  'simple-oauth2': { ...node, script: fileURLToPath(import.meta.resolve('./simple-oauth2.ts')) },
  '@badgateway/oauth2-client': { ...node, script: fileURLToPath(import.meta.resolve('./badgateway-oauth2-client.ts')) },
  'requests-oauthlib': {
    ...python,
    script: file('requests_oauthlib_client.py'),
    needs: [`${PYTHON_PACKAGES}/requests_oauthlib`],
  },
  Authlib: {
    ...python,
    script: file('authlib_client.py'),
    needs: [`${PYTHON_PACKAGES}/authlib`, `${PYTHON_PACKAGES}/requests`],
  },
  'golang.org/x/oauth2': {
    command: 'go-oauth2',
    trust: 'SSL_CERT_FILE',
    needs: ['/usr/bin/go', `${GO_PACKAGES}/src/golang.org/x/oauth2/clientcredentials`],
  },
  curl: { command: '/bin/bash', script: file('curl_client.sh'), trust: 'CURL_CA_BUNDLE', needs: ['/usr/bin/curl'] },
};

/** The client's packages that this machine lacks. If there are any, its tests are skipped. */
export function missingPackages(client: ClientName): readonly string[] {
  return (PROGRAMS[client].needs ?? []).filter((path) => !existsSync(path));
}

/** The clients, as programs on a machine that trusts a hub's CA. */
export class ClientPrograms {
  readonly #folder: string;
  readonly #caFile: string;

  private constructor(folder: string, caFile: string) {
    this.#folder = folder;
    this.#caFile = caFile;
  }

  /**
   * Compiles the clients that need it.
   * @param folder for the result and the CA
   * @param ca PEM
   */
  static async build(folder: string, ca: string): Promise<ClientPrograms> {
    const programs = new ClientPrograms(folder, join(folder, 'latchkey-ca.pem'));
    await writeFile(programs.#caFile, ca);
    if (missingPackages('golang.org/x/oauth2').length === 0) {
      const go = { GO111MODULE: 'off', GOPATH: GO_PACKAGES, GOCACHE: GO_CACHE };
      const args = ['build', '-o', join(folder, 'go-oauth2'), file('go-oauth2/main.go')];
      await promisify(execFile)('/usr/bin/go', args, { env: { ...process.env, ...go } });
    }
    return programs;
  }

  /** @param trusting false: on a machine that trusts only public CAs */
  start(client: ClientName, { trusting = true }: { trusting?: boolean } = {}): RunningClient {
    const { command, script, trust: caVariable } = PROGRAMS[client];
    const env = {
      PATH: `${this.#folder}:${process.env['PATH']}`,
      NODE_COMPILE_CACHE: process.env['NODE_COMPILE_CACHE'],
      PYTHONDONTWRITEBYTECODE: '1',
      ...(trusting ? { [caVariable]: this.#caFile } : {}),
    };
    return new RunningClient(client, spawn(command, script === undefined ? [] : [script], { env }));
  }
}

/** A client's process, which performs one task after another. */
export class RunningClient implements AsyncDisposable {
  readonly #name: ClientName;
  readonly #child: ChildProcessWithoutNullStreams;
  readonly #lines: AsyncIterator<string>;
  readonly #complaints: Promise<string>;

  constructor(name: ClientName, child: ChildProcessWithoutNullStreams) {
    this.#name = name;
    this.#child = child;
    this.#lines = createInterface({ input: child.stdout })[Symbol.asyncIterator]();
    this.#complaints = text(child.stderr);
  }

  /**
   * @param shown gets the response that starts a device flow, which a person has to see
   * @returns the hub's response
   * @throws Error with what the client wrote
   */
  async perform(
    task: ClientTask,
    shown: (prompt: DeviceFlowPrompt) => Promise<void> = async () => {},
  ): Promise<Readonly<Record<string, unknown>>> {
    this.#child.stdin.write(`${JSON.stringify(task)}\n`);
    for (;;) {
      const { done, value } = await this.#lines.next();
      if (done) throw new Error(`${this.#name}, ${task.capability}: ${await this.#complaints}`);
      const line = JSON.parse(value) as ClientOutput;
      if ('response' in line) return line.response;
      if ('failed' in line) throw new Error(`${this.#name}, ${task.capability}: ${line.failed}`);
      await shown(line.shown as DeviceFlowPrompt);
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#child.stdin.end();
    await this.#complaints;
  }
}
