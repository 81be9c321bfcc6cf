import { constants, X509Certificate } from 'node:crypto';
import type { IncomingMessage, RequestListener } from 'node:http';
import type { SecureContextOptions } from 'node:tls';
import type { FastifyInstance, FastifyRequest } from 'fastify';
import type { CaStatus } from '../core/administration.ts';
import type { Clock, Timers } from '../core/clock.ts';
import type { LanService } from '../core/lan-service.ts';
import type { Log } from '../core/log.ts';
import { unmapIpv4 } from '../system/addresses.ts';
import { isOwnHost, isOwnServerName, isVerifiedOwnHost } from '../system/http/host-check.ts';
import { version } from '../system/version.ts';
import { createHttpApp, type NotFoundPage, type Rejection, sendNotFound, servePermitted } from './http-app.ts';
import { Listener } from './listener.ts';
import type { OpenedPort, PortName } from './listening-socket.ts';
import type { AssertionReplayCache } from './oauth/assertion-replay-cache.ts';
import { rejectOAuthOverHttp, serveOAuthEndpoints } from './oauth/authorization-server.ts';

/** The pages for browsers on the two listeners. */
interface HubPages extends NotFoundPage {
  /** @param httpsPort of the other listener */
  registerHttpRoutes(app: FastifyInstance, httpsPort: number): void;
  registerHttpsRoutes(app: FastifyInstance): void;
}

export interface LanServerOptions {
  readonly service: LanService;
  readonly pages: HubPages;
  /** The hub's current DNS names, in lower case: requests for other names are rejected. */
  hostNames(): readonly string[];
  /** The ports to serve; the caller closes them. */
  readonly ports: Readonly<Record<PortName, OpenedPort>>;
  /** The current CA, and during a rotation the old one. */
  ca(): Pick<CaStatus, 'certificate' | 'old'>;
  readonly leaf: LeafPem;
  /** The assertions that this hub and earlier ones in this process have accepted. */
  readonly usedAssertions: AssertionReplayCache;
  readonly log: Log;
  readonly clock: Clock;
  readonly timers: Timers;
}

/** The hub's HTTP and HTTPS listeners on the home network. */
export interface LanServer extends AsyncDisposable {
  readonly httpPort: number;
  readonly httpsPort: number;
  /**
   * Sets the server certificate for new connections. TLS sessions can't be resumed afterwards; open connections
   * continue.
   * @param leaf may be the same as before
   * @throws Error if the certificate and key can't be used for TLS; nothing has changed then
   */
  renewLeaf(leaf: LeafPem): void;
}

const PEM_TYPE = 'application/x-pem-file';
/** The path of the old CA during a rotation. */
const OLD_CA_PATH = '/ca-old.pem';

/** Starts serving both ports. */
export async function startLanServer(options: LanServerOptions): Promise<LanServer> {
  const { timers } = options;
  const { http, https } = options.ports;
  let { leaf } = options;
  const isForAddress = (address: string) => new X509Certificate(leaf.certificate).checkIP(address) !== undefined;
  const secure = await createRequestListener(options, (app) => serveHttpsRoutes(app, options, isForAddress));
  const plain = await createRequestListener(options, (app) => {
    rejectOAuthOverHttp(app, https.port);
    options.pages.registerHttpRoutes(app, https.port);
  });
  const tls = tlsOptions(leaf);
  const listeners = {
    https: https.sockets.map((socket) => Listener.open(socket, { serve: secure, tls, timers })),
    http: http.sockets.map((socket) => Listener.open(socket, { serve: plain, tls: null, timers })),
  };
  return {
    httpPort: http.port,
    httpsPort: https.port,
    renewLeaf(renewed) {
      for (const listener of listeners.https) listener.setTls(tlsOptions(renewed));
      leaf = renewed;
    },
    async [Symbol.asyncDispose]() {
      await Promise.all([...listeners.https, ...listeners.http].map((listener) => listener.close()));
    },
  };
}

async function createRequestListener(
  options: LanServerOptions,
  routes: (app: FastifyInstance) => void,
): Promise<RequestListener> {
  const { pages, hostNames: names, log, ca } = options;
  const app = createHttpApp(pages, log);
  app.get('/ca.pem', { exposeHeadRoute: true }, async (_request, reply) => {
    const { certificate, old } = ca();
    // RFC 5829, section 3.3.
    if (old !== undefined) reply.header('link', `<${OLD_CA_PATH}>; rel="predecessor-version"`);
    return reply.type(PEM_TYPE).send(certificate);
  });
  app.get(OLD_CA_PATH, { exposeHeadRoute: true }, async (request, reply) => {
    const { old } = ca();
    return old === undefined ? sendNotFound(pages, request, reply) : reply.type(PEM_TYPE).send(old.certificate);
  });
  routes(app);
  await app.ready();
  return servePermitted((request) => rejectionFor(request, names()), app.routing);
}

/** The rejection of a request that is not meant for this hub; null if it is. */
function rejectionFor(request: IncomingMessage, names: readonly string[]): Rejection | null {
  if (isOwnHost(request.headers.host, names) && isOwnServerName(request.socket, names)) return null;
  // Not the hub's names: a web page that has made its own host name point to the hub can read this.
  const address = unmapIpv4(request.socket.localAddress ?? '');
  return {
    status: 421,
    text: `This Latchkey hub does not have the host name in the request: use its address, ${address}, or the name that it announces over mDNS.\n`,
  };
}

function serveHttpsRoutes(
  app: FastifyInstance,
  { service, pages, ...environment }: LanServerOptions,
  isForAddress: (address: string) => boolean,
): void {
  const isOwn = ({ hostname, socket }: FastifyRequest) =>
    isVerifiedOwnHost(hostname, socket.localAddress, isForAddress);
  serveOAuthEndpoints(app, service, { isOwn, page: ({ host }) => `https://${host}`, ...environment });
  serveOpenApi(app);
  pages.registerHttpsRoutes(app);
}

/** The description is generated on the first request, because most hubs never get one. */
function serveOpenApi(app: FastifyInstance): void {
  let generated: Promise<Buffer> | undefined;
  const generate = async () => {
    const { openApiDocument } = await import('./openapi/document.ts');
    return Buffer.from(JSON.stringify(openApiDocument(version())));
  };
  app.get('/openapi.json', { exposeHeadRoute: true }, async (_request, reply) => {
    generated ??= generate();
    return reply.type('application/json; charset=utf-8').send(await generated);
  });
}

/** A certificate and its key, PEM. */
interface LeafPem {
  /** The leaf, followed by the rest of its chain. */
  readonly certificate: string;
  readonly key: string;
}

/**
 * The TLS 1.3 suites, and of TLS 1.2 only suites with forward secrecy and authenticated encryption. The order is the
 * server's: AES-128 comes first, because small devices have it in hardware; CCM is for devices without GCM.
 */
const CIPHERS = [
  'TLS_AES_128_GCM_SHA256',
  'TLS_CHACHA20_POLY1305_SHA256',
  'TLS_AES_256_GCM_SHA384',
  'ECDHE-ECDSA-AES128-GCM-SHA256',
  'ECDHE-RSA-AES128-GCM-SHA256',
  'ECDHE-ECDSA-CHACHA20-POLY1305',
  'ECDHE-RSA-CHACHA20-POLY1305',
  'ECDHE-ECDSA-AES256-GCM-SHA384',
  'ECDHE-RSA-AES256-GCM-SHA384',
  'ECDHE-ECDSA-AES128-CCM',
  'ECDHE-ECDSA-AES256-CCM',
].join(':');

/** How long a client may resume a TLS session, in s: appliances request a token about once an hour. */
const SESSION_TIMEOUT = 86_400;

/**
 * The options for a TLS server and for each new secure context. A new context has new keys for session tickets (RFC
 * 5077; RFC 8446, 4.6.1), so that returning clients need a full handshake.
 */
export function tlsOptions({ certificate, key }: LeafPem): SecureContextOptions {
  return {
    cert: certificate,
    key,
    minVersion: 'TLSv1.2',
    ciphers: CIPHERS,
    honorCipherOrder: true,
    secureOptions: constants.SSL_OP_NO_RENEGOTIATION,
    sessionTimeout: SESSION_TIMEOUT,
  };
}
