import type { FastifyInstance, FastifyReply } from 'fastify';
import * as v from 'valibot';
import type { Administration, ApplianceStatus, IssuedCredentials } from '../core/administration.ts';
import { Failure } from '../core/failure.ts';
import { publicReason } from '../core/reports/pairing-failure.ts';
import type { SetupCode } from '../core/setup-access.ts';
import type { ApplianceResponse, CredentialsResponse, SetupCodeResponse } from './messages.ts';
import { type Routes, routes } from './routes.ts';

/** Bytes of a request: that of a restore has a whole copy, also of a hub with the most appliances that it takes. */
const MAX_BODY_BYTES = 65_536;
const MAX_BACKUP_BYTES = 64 * 1024 * 1024;

/** Members of requests whose values are never said back. */
const SECRET_MEMBERS = ['copy', 'passphrase'];

/** What answers a route. `afterwards` runs something when the answer is out, or whoever asked is gone. */
type Handler<Name extends keyof Routes> = (
  request: v.InferOutput<Routes[Name]['request']>,
  afterwards: (run: () => void) => void,
) => DeepReadonly<RouteResponse<Name>> | Promise<DeepReadonly<RouteResponse<Name>>>;

type Handlers = { readonly [Name in keyof Routes]: Handler<Name> };
type RouteResponse<Name extends keyof Routes> = v.InferInput<Routes[Name]['answer']>;

/** What may be sent, and is changed by nobody. */
type DeepReadonly<Value> = Value extends object ? { readonly [Key in keyof Value]: DeepReadonly<Value[Key]> } : Value;

/** Serves all {@link routes}. */
export function serveRoutes(app: FastifyInstance, administration: Administration): void {
  const handlers = createHandlers(administration);
  for (const name of Object.keys(routes).filter(isRouteName)) serveRoute(app, name, handlers);
}

function serveRoute<Name extends keyof Routes>(app: FastifyInstance, name: Name, handlers: Handlers): void {
  const { method, path, request, status } = routes[name];
  const handle = handlers[name];
  app.route({
    method,
    url: path,
    bodyLimit: name === 'restore' ? MAX_BACKUP_BYTES : MAX_BODY_BYTES,
    handler: async ({ params, body }, reply) => {
      const asked = parseRequest<Routes[Name]['request']>(request, mergeParams(body, params));
      const answer = await handle(asked, (run) => afterResponse(reply, run));
      return reply.code(answer === undefined ? 204 : status).send(answer);
    },
  });
}

function createHandlers(administration: Administration): Handlers {
  return {
    async status() {
      const { appliances, ...rest } = await administration.status();
      return { ...toWire(rest), appliances: appliances.map(applianceResponse) };
    },
    testNotices: () => administration.testNotices(),
    authority: () => administration.caStatus(),
    rotateAuthority: ({ keep }) => administration.rotateCa(keep),
    keepOldAuthority: ({ keep }) => administration.setOldCaLifetime(keep),
    addAppliance: async ({ name, scope, portal }) =>
      credentialsResponse(await administration.addAppliance(name, scope, portal)),
    removeAppliance: ({ name }) => administration.removeAppliance(name),
    rotateSecret: async ({ name, replace_keys }) =>
      credentialsResponse(await administration.rotateSecret(name, replace_keys)),
    approveAppliance: async ({ name, code }) => applianceResponse(await administration.approveAppliance(name, code)),
    async invite(request) {
      const { token, name, scope, expiresIn, registrationEndpoint, caFingerprint } =
        await administration.invite(request);
      return {
        token: token.reveal(),
        name,
        scope,
        expires_in: expiresIn,
        registration_endpoint: registrationEndpoint,
        ca_fingerprint: caFingerprint,
      };
    },
    async openRegistration({ open_for }) {
      const { registrationEndpoint, caFingerprint } = await administration.openRegistration(open_for);
      return { open_for, registration_endpoint: registrationEndpoint, ca_fingerprint: caFingerprint };
    },
    pair: async ({ name }) => ({ pairing: await administration.pair(name) }),
    label({ name }) {
      const { hubName, link, addressLink: byAddress } = administration.label(name);
      return { name, hub_name: hubName, link, by_address: byAddress };
    },
    pairAll: () => administration.pairAll(),
    nextPairing: ({ id }) => administration.startNextPairing(id),
    unpair: ({ name }) => administration.unpair(name),
    async token({ name }) {
      const { accessToken, expiresIn, scope } = await administration.token(name);
      return {
        access_token: accessToken.reveal(),
        token_type: 'Bearer',
        expires_in: expiresIn,
        ...(scope === null ? {} : { scope }),
      };
    },
    history: ({ name }) => administration.history(name),
    refresh: async ({ name }) => applianceResponse(await administration.refresh(name)),
    setupCode: async () => setupCodeResponse(await administration.setupCode()),
    rotateSetupCode: async () => setupCodeResponse(await administration.rotateSetupCode()),
    rotateStoreKey: async () => toWire(await administration.rotateStoreKey()),
    backUp: ({ passphrase }) => administration.backUp(passphrase),
    async restore({ copy, passphrase }, afterwards) {
      const { report, restart } = await administration.restore(copy, passphrase);
      afterwards(restart);
      return toWire(report);
    },
    async reload(_, afterwards) {
      const { id, start: begin } = await administration.reload();
      afterwards(begin);
      return { reload: id };
    },
    reloadOutcome: ({ id }) => administration.reloadOutcome(id),
  };
}

/** The hub that starts anew closes this connection: not before the answer is out, or whoever asked is gone. */
function afterResponse({ raw }: FastifyReply, run: () => void): void {
  if (raw.closed) run();
  else raw.once('close', run);
}

/** What programs are told of an appliance; where files are they have in the messages. */
function applianceResponse({
  credentialLocation: _,
  credentialsUntried: __,
  pairingFailed: failed,
  ...status
}: ApplianceStatus): DeepReadonly<ApplianceResponse> {
  const pairingFailed = failed && { ...failed, reason: publicReason(failed.reason) };
  return toWire({ ...status, ...(pairingFailed && { pairingFailed }) });
}

function credentialsResponse(issued: IssuedCredentials): CredentialsResponse {
  return {
    name: issued.name,
    client_id: issued.clientId,
    client_secret: issued.clientSecret.reveal(),
    token_endpoint: issued.tokenEndpoint,
    ca_fingerprint: issued.caFingerprint,
  };
}

function setupCodeResponse({ code, pageUrl: page, signInUrl: signIn, signInExpiresIn }: SetupCode): SetupCodeResponse {
  return { code: code.reveal(), page, sign_in: signIn.reveal(), expires_in: signInExpiresIn };
}

/** What was asked, from both places of a request. A body that is no object is refused as it is. */
function mergeParams(body: unknown, params: unknown): unknown {
  const members = body ?? {};
  return typeof members === 'object' && !Array.isArray(members) ? Object.assign({}, members, params) : members;
}

/** @throws Failure `request_invalid` */
function parseRequest<Schema extends v.GenericSchema>(schema: Schema, request: unknown): v.InferOutput<Schema> {
  const parsed = v.safeParse(schema, request);
  if (parsed.success) return parsed.output;
  const [issue] = parsed.issues;
  const where = v.getDotPath(issue) ?? 'the body';
  const found = SECRET_MEMBERS.includes(where) ? 'something else' : issue.received;
  throw new Failure('request_invalid', `${where}: found ${found}; allowed is ${issue.expected ?? 'something else'}`);
}

function isRouteName(name: string): name is keyof Routes {
  return name in routes;
}

/** A domain value as it stands on the control socket: the names of its members in snake_case. */
type Wire<Value> = Value extends readonly (infer Item)[]
  ? readonly Wire<Item>[]
  : Value extends object
    ? { [Key in keyof Value as SnakeCase<Key & string>]: Wire<Value[Key]> }
    : Value;

type SnakeCase<Name extends string> = Name extends `${infer Letter}${infer Rest}`
  ? `${Letter extends Lowercase<Letter> ? Letter : `_${Lowercase<Letter>}`}${SnakeCase<Rest>}`
  : Name;

/** Gives a domain value its names on the control socket; it holds what JSON can hold, and no secrets. */
export function toWire<Value>(value: Value): Wire<Value>;
export function toWire(value: unknown): unknown {
  if (Array.isArray(value)) return value.map((item) => toWire(item));
  if (typeof value !== 'object' || value === null) return value;
  return Object.fromEntries(Object.entries(value).map(([name, member]) => [snakeCase(name), toWire(member)]));
}

function snakeCase(name: string): string {
  return name.replaceAll(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`);
}
