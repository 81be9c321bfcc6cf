import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { root } from '../project/checkout.ts';

/** The page for public web servers. */
export const RELAY = readFileSync(join(root, 'docs/relay.html'), 'utf8');

/** Callback addresses that the relay forwards to, as the URL parser writes them. */
const PRIVATE: readonly string[] = [
  'http://192.168.1.20:8480/callback',
  'http://172.16.0.1/callback',
  'http://172.31.255.254/callback',
  'http://169.254.7.7:8480/callback',
  'http://127.9.9.9:8480/callback',
  'http://localhost:8480/callback',
  'http://[::1]:8480/callback',
  'http://[fd12:3456:789a:1:2:3:4:5]:8480/callback',
  'http://[fe80::1]:8480/callback',
  'http://hub.local:8480/callback',
  'http://latchkey-1a2b.home.arpa/callback',
  'https://10.0.0.5:8443/callback',
];

/** The same in other notations, with what the URL parser makes of them when the browser judges and when it connects. */
const NOTATIONS: readonly (readonly [address: string, parsed: string])[] = [
  ['http://[FEBF::1]/callback', 'http://[febf::1]/callback'],
  ['http://[::ffff:192.168.1.20]:8480/callback', 'http://[::ffff:c0a8:114]:8480/callback'],
  ['HTTP://HUB.LOCAL:8480/callback', 'http://hub.local:8480/callback'],
  ['http://0xc0a80114:8480/callback', 'http://192.168.1.20:8480/callback'],
  ['http://0300.0250.1.024/callback', 'http://192.168.1.20/callback'],
  ['http://192.168.1.20./callback', 'http://192.168.1.20/callback'],
  ['http://%31%39%32.168.1.20/callback', 'http://192.168.1.20/callback'],
  ['http:\\\\192.168.1.20\\callback', 'http://192.168.1.20/callback'],
  ['http://192.168.1.20:80/elsewhere/../callback', 'http://192.168.1.20/callback'],
];

/** Addresses that the relay refuses, in printable ASCII. */
const FOREIGN: readonly string[] = [
  // Other hosts, and hosts that look like private ones.
  'http://evil.example/callback',
  'http://8.8.8.8/callback',
  'http://192.168.1.20.evil.example/callback',
  'http://hub.local%2eevil.example/callback',
  'http://evil.example?.local/callback',
  'http://evil.example#.local/callback',
  'http://evil.example%2f.local/callback',
  'http://evil-local/callback',
  'http://local/callback',
  'http://home.arpa/callback',
  'http://.local/callback',
  'http://hub.local./callback',
  'http://hub.localhost/callback',
  'http://hub/callback',
  // User info.
  'http://192.168.1.20@evil.example/callback',
  'http://user@192.168.1.20/callback',
  'http://:password@192.168.1.20/callback',
  'http://evil.example\\@192.168.1.20/callback',
  'http://evil.example#@192.168.1.20/callback',
  // The neighbours of the private ranges, in several notations.
  'http://9.255.255.255/callback',
  'http://11.0.0.1/callback',
  'http://126.255.255.255/callback',
  'http://169.253.255.255/callback',
  'http://169.255.0.1/callback',
  'http://172.15.255.255/callback',
  'http://172.32.0.1/callback',
  'http://192.167.255.255/callback',
  'http://192.169.0.1/callback',
  'http://100.64.0.1/callback',
  'http://0.0.0.0/callback',
  'http://255.255.255.255/callback',
  'http://0x08080808/callback',
  'http://010.010.010.010/callback',
  'http://[::]/callback',
  'http://[::2]/callback',
  'http://[fc::1]/callback',
  'http://[fbff::1]/callback',
  'http://[fe00::1]/callback',
  'http://[fec0::1]/callback',
  'http://[ff02::1]/callback',
  'http://[2001:db8::1]/callback',
  'http://[64:ff9b::192.168.1.20]/callback',
  'http://[::ffff:8.8.8.8]/callback',
  // Other schemes, other paths, and what is no URL.
  'javascript:alert(1)//192.168.1.20/callback',
  'data:text/html,/callback',
  'ftp://192.168.1.20/callback',
  'blob:http://192.168.1.20/callback',
  '//192.168.1.20/callback',
  '/callback',
  'http://192.168.1.20/',
  'http://192.168.1.20//callback',
  'http://192.168.1.20/callback/8Zr2mQ',
  'http://192.168.1.20/Callback',
  'http://192.168.1.20/%63allback',
  'http://192.168.1.20/callback%3Fx',
  'http://192.168.1.20/callback?x=1',
  'http://192.168.1.20/callback#x',
  'http://192.168.1.20:99999/callback',
  'http%3A%2F%2F192.168.1.20%2Fcallback',
];

/** The first part of a state. */
const RANDOM_PART = 'AbCdEfGhIjKlMnOpQr-_09';
const HUB = 'http://192.168.1.20:8480/callback';

/** The state of a hub with this callback address. */
export function stateFor(address: string): string {
  return `${RANDOM_PART}.${Buffer.from(address).toString('base64url')}`;
}

/** Queries from which the relay can take no address at all. */
const NAMELESS: readonly string[] = [
  '',
  '?code=1',
  '?code=1&state=',
  `?code=1&state=${RANDOM_PART}`,
  `?code=1&state=${RANDOM_PART}.`,
  `?code=1&state=${stateFor(HUB).slice(1)}`,
  `?code=1&state=A${stateFor(HUB)}`,
  `?code=1&state=${stateFor(HUB)}.${RANDOM_PART}`,
  `?code=1&state=%20${stateFor(HUB)}`,
  `?code=1&state=${stateFor(HUB)}%0A`,
  `?code=1&State=${stateFor(HUB)}`,
  // Twice, also with another spelling of the name.
  `?state=${stateFor(HUB)}&code=1&state=${stateFor(HUB)}`,
  `?state=${stateFor(HUB)}&code=1&st%61te=${stateFor('http://192.168.1.21/callback')}`,
  // No base64url: a length that can't be, padding, base64's own characters, percent-encoding twice.
  `?code=1&state=${RANDOM_PART}.A`,
  `?code=1&state=${stateFor(`${HUB}1`)}%3D%3D`,
  `?code=1&state=${RANDOM_PART}.aHR0cDovL%2FCB9%2B`,
  `?code=1&state=${stateFor(HUB).replace('.', '%252E')}`,
  // No printable ASCII: other digits and dots, line breaks, spaces, UTF-16.
  `?code=1&state=${stateFor('http://１９２.168.1.20/callback')}`,
  `?code=1&state=${stateFor('http://evil。local/callback')}`,
  `?code=1&state=${stateFor('http://192.168\n.1.20/callback')}`,
  `?code=1&state=${stateFor(' http://192.168.1.20/callback')}`,
  `?code=1&state=${stateFor('\0http://192.168.1.20/callback')}`,
  `?code=1&state=${RANDOM_PART}.${Buffer.from(HUB, 'utf16le').toString('base64url')}`,
  // Huge.
  `?code=1&state=${stateFor(`http://${'a.'.repeat(300)}local/callback`)}`,
  `?code=1&state=${stateFor(`http://192.168.1.20/${'x/../'.repeat(2000)}callback`)}`,
];

/** Every query of the tables with what the relay decides: the callback address that it forwards to, or why to none. */
export const DECISIONS: readonly (readonly [query: string, decision: string])[] = [
  ...[...PRIVATE.map((address) => [address, address] as const), ...NOTATIONS].map(
    ([address, parsed], index) => [`?code=${index}&state=${stateFor(address)}`, parsed] as const,
  ),
  ...FOREIGN.map((address) => [`?code=1&state=${stateFor(address)}`, 'foreign'] as const),
  ...NAMELESS.map((query) => [query, 'nameless'] as const),
];

/** An expression for the relay's document: its decisions about all these queries, as JSON. */
export const DECIDE = `JSON.stringify(${JSON.stringify(DECISIONS.map(([query]) => query))}.map((query) => {
  const named = namedAddress(query);
  return [query, named === null ? 'nameless' : (callbackOf(named)?.href ?? 'foreign')];
}))`;
