import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';

/** A client that `./scripts/exam` examines. To add one, add its adapter to `clients/` and an entry here. */
export interface ExaminedClient {
  /** Its name in its registry. */
  readonly name: string;
  /** The file of its adapter in `clients/`. */
  readonly adapter: string;
  /** Its version, such as "npm 6.9.0". @throws if it is not installed */
  readonly version: (folder: string) => string;
  /** A shell command that builds the adapter; `$adapters` is the folder of the adapters, `$scratch` an empty one. */
  readonly build?: string;
  /** With `{node}`, `{adapters}` and `{scratch}`. */
  readonly command: readonly string[];
  /** Options of the exam. */
  readonly options?: readonly string[];
}

/** A package of npm, locked in `clients/package-lock.json`. */
function npm(name: string, options: readonly string[] = []): ExaminedClient {
  const adapter = `${name.replace('@', '').replaceAll('/', '-')}.mjs`;
  return {
    ...{ name, adapter, options, command: ['{node}', `{adapters}/${adapter}`] },
    version(folder) {
      const manifest = JSON.parse(readFileSync(join(folder, 'node_modules', name, 'package.json'), 'utf8')) as {
        version: string;
      };
      return `npm ${manifest.version}`;
    },
  };
}

/** The version of a package of Debian. */
function debian(name: string): () => string {
  return () => `Debian ${execFileSync('dpkg-query', ['--show', name], { encoding: 'utf8' }).trim().split('\t')[1]}`;
}

/** A package of Debian for its Python. */
function python(name: string, adapter: string): ExaminedClient {
  return {
    ...{ name, adapter, version: debian(`python3-${name.toLowerCase()}`) },
    command: ['/usr/bin/python3', '-B', `{adapters}/${adapter}`],
  };
}

const latchkey = join(import.meta.dirname, '../latchkey');

/** All of them, in the order of the page. */
export const CLIENTS: readonly ExaminedClient[] = [
  npm('openid-client'),
  npm('oauth4webapi'),
  npm('simple-oauth2'),
  npm('@badgateway/oauth2-client'),
  npm('client-oauth2'),
  npm('axios-oauth-client'),
  npm('google-auth-library'),
  npm('@modelcontextprotocol/sdk'),
  npm('better-auth'),
  npm('@auth/core', ['--redirect', 'http://127.0.0.1/auth/callback/cloud']),
  // It accepts no plain HTTP.
  npm('@azure/msal-node', ['--https']),
  npm('@okta/okta-auth-js'),
  npm('oidc-client-ts'),
  npm('passport-oauth2-refresh'),
  npm('node-red-contrib-oauth2'),
  python('requests-oauthlib', 'requests-oauthlib.py'),
  python('Authlib', 'authlib-session.py'),
  {
    name: 'golang.org/x/oauth2',
    adapter: 'golang-x-oauth2.go',
    version: debian('golang-golang-x-oauth2-dev'),
    build:
      'cd "$scratch" && GO111MODULE=off GOPATH=/usr/share/gocode GOCACHE="$scratch/cache" /usr/bin/go build -o client "$adapters/golang-x-oauth2.go"',
    command: ['{scratch}/client'],
  },
  {
    name: 'oidc-agent',
    adapter: 'oidc-agent.mjs',
    version: debian('oidc-agent-cli'),
    command: ['{node}', '{adapters}/oidc-agent.mjs'],
    options: ['--redirect', 'http://localhost/callback'],
  },
  {
    name: 'latchkey',
    adapter: 'latchkey.mjs',
    version: () => `this clone, ${execFileSync(latchkey, ['--version'], { encoding: 'utf8' }).trim()}`,
    command: ['{node}', '{adapters}/latchkey.mjs'],
  },
];
