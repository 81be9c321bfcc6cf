import type { Capability } from './client-protocol.ts';

/** The columns, as the page for developers of appliances names them. */
const CAPABILITIES: Readonly<Record<Capability, string>> = {
  discovery: 'discovery',
  client_secret_basic: 'client_secret_basic',
  client_secret_post: 'client_secret_post',
  private_key_jwt: 'private_key_jwt',
  device_flow: 'device flow',
  refresh_token: 'refresh_token',
  registration: 'registration',
  revocation: 'revocation',
};

const ALL = Object.keys(CAPABILITIES) as Capability[];
const SECRETS = ['client_secret_basic', 'client_secret_post'] as const;

/** What every unmodified client can do with the hub; its library does not support the rest. */
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

/** The clients and their capabilities, as a Markdown table. */
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
