// Connections to a hub, each from one of many addresses of this machine: the hub bounds what one address may do.
import { connect } from 'node:net';
import { type ConnectionOptions, connect as secureConnect } from 'node:tls';
import { Dice } from '../dice.ts';
import type { Dial } from '../exchange.ts';
import type { Numbered } from '../lanes.ts';

/** Where a hub listens. */
export interface HubPorts {
  readonly httpPort: number;
  readonly httpsPort: number;
  /** Its CA's certificate, PEM. */
  readonly ca: string;
}

/** Names that a client may ask for in its TLS handshake; none where it is undefined. */
const NAMES = ['evil.example', 'localhost', 'a'.repeat(63), 'xn--nxasmq6b', undefined];

/** The session of the last handshake, which the next one resumes as appliances do. */
let session: Buffer | undefined;

/** Opens the connection for a request. Now and then it asks for an odd name; where no answer is needed, it speaks no TLS. */
export function hubDial({ httpPort, httpsPort, ca }: HubPorts, seed: number, { number, request }: Numbered): Dial {
  const dice = new Dice(Math.imul(seed + 2, 0x9e3779b1) ^ Math.imul(number + 5, 0xc2b2ae35));
  // 20,000 of them.
  const localAddress = `127.${1 + dice.below(80)}.${1 + dice.below(250)}.1`;
  const secure = request.origin === 'https';
  const plain = !secure || (!request.sound && dice.chance(0.1));
  const odd = dice.chance(request.sound ? 0.01 : 0.1) ? { servername: dice.of(NAMES, undefined) } : {};
  return () => {
    const tcp = connect({ host: '127.0.0.1', port: secure ? httpsPort : httpPort, localAddress, noDelay: true });
    const reset = () => (tcp.destroyed ? undefined : tcp.resetAndDestroy());
    if (plain) return { socket: tcp, ready: 'connect', reset };
    const options: ConnectionOptions = { socket: tcp, ca, checkServerIdentity: () => undefined };
    const socket = secureConnect({ ...options, ...withName(odd), ...(session !== undefined && { session }) });
    socket.once('session', (next: Buffer) => {
      session = next;
    });
    // The TLS connection tells of its errors; what the one below says of the same is heard by nobody.
    tcp.on('error', () => undefined);
    return { socket, ready: 'secureConnect', reset };
  };
}

function withName({ servername }: { readonly servername?: string | undefined }): ConnectionOptions {
  return servername === undefined ? {} : { servername };
}
