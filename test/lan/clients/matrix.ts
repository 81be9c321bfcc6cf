import type { Capability } from './client-protocol.ts';

/** The columns, as the page for the developers of appliances calls them. */
const CAPABILITIES: Readonly<Record<Capability, string>> = {
  discovery: 'finds the endpoints by itself',
  client_secret_basic: 'token, secret in the header',
  client_secret_post: 'token, secret in the form',
  private_key_jwt: 'token, with a private key',
  device_flow: 'device flow',
  refresh_token: 'refresh_token',
  registration: 'introduces itself',
  revocation: 'revokes a token',
};

const ALL = Object.keys(CAPABILITIES) as Capability[];
const SECRETS = ['client_secret_basic', 'client_secret_post'] as const;

/** What every client can do with the hub, unmodified; of the rest its library has none. */
export const CLIENT_MATRIX = {
  'openid-client': ALL,
  oauth4webapi: ALL,
  'simple-oauth2': [...SECRETS, 'refresh_token', 'revocation'],
  '@badgateway/oauth2-client': ['discovery', ...SECRETS, 'refresh_token', 'revocation'],
  'requests-oauthlib': [...SECRETS, 'device_flow', 'refresh_token', 'revocation'],
  Authlib: ALL.filter((capability) => capability !== 'registration'),
  'golang.org/x/oauth2': [...SECRETS, 'refresh_token'],
  curl: ALL.filter((capability) => capability !== 'private_key_jwt'),
} as const satisfies Readonly<Record<string, readonly Capability[]>>;

export type ClientName = keyof typeof CLIENT_MATRIX;

/** Clients and what they did, as a table of Markdown. */
export function matrixTable(done: Readonly<Record<string, readonly Capability[]>>): string {
  const row = (cells: readonly string[]) => `| ${cells.join(' | ')} |`;
  return [
    row(['', ...Object.values(CAPABILITIES)]),
    row(['', ...ALL].map(() => '---')),
    ...Object.entries(done).map(([client, did]) =>
      row([client, ...ALL.map((capability) => (did.includes(capability) ? 'works' : '–'))]),
    ),
  ].join('\n');
}
