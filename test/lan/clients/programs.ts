import { execFile, spawn } from 'node:child_process';
import { existsSync } from 'node:fs';
import { writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { text } from 'node:stream/consumers';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import type { Capability, Given } from './conversation.ts';
import type { ClientName } from './matrix.ts';
import type { Shown } from './person.ts';

const PYTHON_PACKAGES = '/usr/lib/python3/dist-packages';
const GO_PACKAGES = '/usr/share/gocode';

/** How a client is started. */
interface Program {
  readonly command: string;
  readonly script?: string;
  /** The environment variable that names the file of a CA to trust. */
  readonly trust: string;
  /** The files of the operating system's packages that it needs. */
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

/** The client's packages that this machine lacks: where there are any, its tests are skipped. */
export function missing(client: ClientName): readonly string[] {
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
   * Compiles what has to be compiled.
   * @param folder where that is kept, with the CA
   * @param ca PEM
   */
  static async build(folder: string, ca: string): Promise<ClientPrograms> {
    const programs = new ClientPrograms(folder, join(folder, 'latchkey-ca.pem'));
    await writeFile(programs.#caFile, ca);
    if (missing('golang.org/x/oauth2').length === 0) {
      const go = { GO111MODULE: 'off', GOPATH: GO_PACKAGES, GOCACHE: join(tmpdir(), 'go-build-cache') };
      const args = ['build', '-o', join(folder, 'go-oauth2'), file('go-oauth2/main.go')];
      await promisify(execFile)('go', args, { env: { ...process.env, ...go } });
    }
    return programs;
  }

  /**
   * Lets a client do one thing.
   * @param shown takes the answer that begins a device flow: what a person has to be shown
   * @param trusting false: the machine knows no CA but the public ones
   * @returns what the hub said to it
   * @throws Error with what the client wrote
   */
  async perform(
    client: ClientName,
    capability: Capability,
    given: Partial<Given>,
    shown: (what: Shown) => Promise<void> = async () => {},
    trusting = true,
  ): Promise<Record<string, unknown>> {
    const { command, script, trust } = PROGRAMS[client];
    const args = script === undefined ? [capability] : [script, capability];
    const path = `${this.#folder}:${process.env['PATH']}`;
    const env = { PATH: path, ...(trusting ? { [trust]: this.#caFile } : {}) };
    const child = spawn(command, args, { env, timeout: 60_000 });
    const status = new Promise((resolve) => child.once('close', resolve));
    const complaints = text(child.stderr);
    child.stdin.end(JSON.stringify(given));
    let answer: Record<string, unknown> = {};
    for await (const line of createInterface({ input: child.stdout })) {
      answer = JSON.parse(line || '{}') as Record<string, unknown>;
      if ('user_code' in answer) await shown(answer as unknown as Shown);
    }
    if ((await status) === 0) return answer;
    throw new Error(`${client}, ${capability}: ${await complaints} ${JSON.stringify(answer)}`);
  }
}
