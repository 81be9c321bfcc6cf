import { spawn } from 'node:child_process';
import { symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { text } from 'node:stream/consumers';
import type { Emulator } from '../../../src/emulator/index.ts';
import { root, temporaryFolder } from '../../project/checkout.ts';
import { scaleDeadline } from '../../support/deadlines.ts';
import { HubProcess } from '../../support/hub-process.ts';
import { rememberSecrets } from '../../support/logs.ts';
import { startPortal } from '../../support/portal.ts';
import { HubClient } from '../hub-client.ts';
import { logIn } from './device-login.ts';

/** How a program ended; `stdout` omits the lines that asked a person to open a link. */
interface ProgramResult {
  readonly status: number | null;
  readonly stdout: string;
  readonly stderr: string;
}

/** Runs a program; `env` is added to the addresses and the pin, which every program gets. */
type Run = (command: string, args: readonly string[], env?: NodeJS.ProcessEnv) => Promise<ProgramResult>;

/** A test's folder, with `latchkey-ca.pem` in it. */
interface Workspace extends Disposable {
  readonly run: Run;
  /** A script for the shell, Python or Node. */
  readonly sh: (script: string, env?: NodeJS.ProcessEnv) => Promise<ProgramResult>;
  readonly python: (script: string, env?: NodeJS.ProcessEnv) => Promise<ProgramResult>;
  readonly js: (script: string, env?: NodeJS.ProcessEnv) => Promise<ProgramResult>;
  /** @returns its path */
  write(name: string, content: string): string;
}

/** A hub and an emulator, which stands in for the portal and the cloud: here the programs of appliances are tested. */
export class ApplianceTestBed implements AsyncDisposable {
  readonly emulator: Emulator;
  readonly hub: HubProcess;
  readonly wire: HubClient;
  /** The pin of the hub's CA. */
  readonly pin: string;

  private constructor(emulator: Emulator, hub: HubProcess, wire: HubClient, pin: string) {
    this.emulator = emulator;
    this.hub = hub;
    this.wire = wire;
    this.pin = pin;
  }

  static async start(): Promise<ApplianceTestBed> {
    const emulator = await startPortal();
    const hub = await HubProcess.start({ emulator });
    return new ApplianceTestBed(emulator, hub, await HubClient.of(hub), (await hub.authority()).fingerprint);
  }

  /** @param ca the content of `latchkey-ca.pem`; null creates no such file */
  createWorkspace(ca: string | null = this.wire.ca): Workspace {
    const folder = temporaryFolder();
    const write = (name: string, content: string) => {
      const path = join(folder.path, name);
      writeFileSync(path, content);
      return path;
    };
    const run: Run = (command, args, env = {}) => this.#run(folder.path, command, args, env);
    symlinkSync(join(root, 'node_modules'), join(folder.path, 'node_modules'));
    if (ca !== null) write('latchkey-ca.pem', ca);
    return {
      run,
      write,
      sh: (script, env) => run('/bin/sh', ['-euc', script], env),
      python: (script, env) => run('/usr/bin/python3', ['-c', script], env),
      js: (script, env) => run(process.execPath, [write('example.mjs', script)], env),
      [Symbol.dispose]: () => folder[Symbol.dispose](),
    };
  }

  /** An appliance's credentials, as environment variables of the programs. */
  async addAppliance(name: string, paired = true): Promise<NodeJS.ProcessEnv> {
    const { client_id, client_secret } = await this.hub.addAppliance(name, 'Monitoring');
    if (paired) await this.hub.pair(name, this.emulator);
    return { CLIENT_ID: client_id, CLIENT_SECRET: client_secret };
  }

  /** A paired appliance with a key. @returns its private key as PEM, and its client_id */
  async addApplianceWithKey(name: string): Promise<{ readonly pem: string; readonly env: NodeJS.ProcessEnv }> {
    const pair = await crypto.subtle.generateKey({ name: 'ECDSA', namedCurve: 'P-256' }, true, ['sign', 'verify']);
    const der = Buffer.from(await crypto.subtle.exportKey('pkcs8', pair.privateKey)).toString('base64');
    const jwks = { keys: [await crypto.subtle.exportKey('jwk', pair.publicKey)] };
    const { client_id } = await this.wire.register({ jwks }, await this.invite(name));
    await this.hub.pair(name, this.emulator);
    return {
      pem: `-----BEGIN PRIVATE KEY-----\n${der}\n-----END PRIVATE KEY-----\n`,
      env: { CLIENT_ID: String(client_id) },
    };
  }

  /** @returns an initial access token */
  async invite(name: string): Promise<string> {
    const { token } = await this.hub.ask((control) =>
      control.request('invite', { name, scope: null, portal: null, connection: null, ttl: 3600 }),
    );
    rememberSecrets([token]);
    return token;
  }

  /** The user that the cloud returns for this token. */
  async userOf(accessToken: unknown): Promise<unknown> {
    const headers = { authorization: `Bearer ${accessToken}` };
    const response = await fetch(`${this.emulator.baseUrl}/api/whoami`, { headers });
    return ((await response.json()) as { user?: unknown }).user;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.wire[Symbol.asyncDispose]();
    await this.hub[Symbol.asyncDispose]();
    await this.emulator.close();
  }

  /** If the program prints "Open …", this opens the link and logs in. */
  async #run(cwd: string, command: string, args: readonly string[], more: NodeJS.ProcessEnv): Promise<ProgramResult> {
    const env = {
      PATH: process.env['PATH'],
      NODE_COMPILE_CACHE: process.env['NODE_COMPILE_CACHE'],
      HUB: `https://127.0.0.1:${this.hub.httpsPort}`,
      HUB_HTTP: `http://127.0.0.1:${this.hub.httpPort}`,
      PIN: this.pin,
      CLOUD: this.emulator.baseUrl,
      // The emulator stands in for the cloud, and uses plain HTTP on loopback.
      OAUTHLIB_INSECURE_TRANSPORT: '1',
      ...more,
    };
    const child = spawn(command, args, { cwd, env, timeout: scaleDeadline(20_000), stdio: ['ignore', 'pipe', 'pipe'] });
    const status = new Promise<number | null>((resolve) => child.once('close', resolve));
    const stderr = text(child.stderr);
    let stdout = '';
    for await (const line of createInterface({ input: child.stdout })) {
      const page = /^Open (https:\S+)$/.exec(line)?.[1];
      if (page === undefined) stdout += `${line}\n`;
      else await this.#open(page);
    }
    return { status: await status, stdout, stderr: await stderr };
  }

  async #open(page: string): Promise<void> {
    const { origin, pathname, searchParams } = new URL(page);
    const user_code = searchParams.get('user_code') ?? '';
    const shown = { verification_uri: origin + pathname, user_code, verification_uri_complete: page };
    await logIn(shown, this.emulator, this.wire.ca);
  }
}
