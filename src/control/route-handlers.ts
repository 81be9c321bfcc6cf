import type { FastifyInstance } from 'fastify';
import * as v from 'valibot';
import type { Administration, IssuedCredentials } from '../core/administration.ts';
import type { ApplianceStatus } from '../core/appliances/appliance-status.ts';
import type { ConnectionStatus, LoginStatus } from '../core/connections/connection-status.ts';
import { Failure } from '../core/failure.ts';
import type { PortalAddition } from '../core/portals/portal-administration.ts';
import { publicReason } from '../core/reports/pairing-failure.ts';
import { Secret } from '../core/secret.ts';
import type { SetupCode } from '../core/setup-access.ts';
import { afterResponse } from '../system/http/after-response.ts';
import { mapInSlices } from '../system/slices.ts';
import {
  type ApplianceResponse,
  type ConnectionResponse,
  type CredentialsResponse,
  type SetupCodeResponse,
  toWire,
} from './messages.ts';
import { type RouteName, type RouteRequest, type RouteResponse, routes } from './routes.ts';

/**
 * The most bytes of a request body, and of that of a restore: a whole backup of
 * 1,000 connections with the longest tokens.
 */
const MAX_BODY_BYTES = 65_536;
const MAX_BACKUP_BYTES = 64 * 1024 * 1024;

/** Members of requests whose values never appear in an error. */
const SECRET_MEMBERS = ['address', 'client_secret', 'copy', 'passphrase', 'refresh_token'];

/** Handles a route. `afterwards` runs a callback when the response has been sent, or the client has disconnected. */
type Handler<Name extends RouteName> = (
  request: RouteRequest<Name>,
  afterwards: (run: () => void) => void,
) => RouteResponse<Name> | Promise<RouteResponse<Name>>;

type Handlers = { readonly [Name in RouteName]: Handler<Name> };

/** Serves all {@link routes}. */
export function serveRoutes(app: FastifyInstance, administration: Administration): void {
  const handlers = createHandlers(administration);
  for (const name of Object.keys(routes).filter(isRouteName)) serveRoute(app, name, handlers);
}

function serveRoute<Name extends RouteName>(app: FastifyInstance, name: Name, handlers: Handlers): void {
  const { method, path, request, status } = routes[name];
  const handle = handlers[name];
  app.route({
    method,
    url: path,
    bodyLimit: name === 'restore' ? MAX_BACKUP_BYTES : MAX_BODY_BYTES,
    handler: async ({ params, body }, reply) => {
      const parsed = parseRequest<(typeof routes)[Name]['request']>(request, mergeParams(body, params));
      const response = await handle(parsed, (run) => afterResponse(reply.raw, run));
      return reply.code(response === undefined ? 204 : status).send(response);
    },
  });
}

function createHandlers(administration: Administration): Handlers {
  return {
    async status() {
      const { connections, appliances, ...rest } = await administration.status();
      return {
        ...toWire(rest),
        connections: await mapInSlices(connections, (each) => connectionResponse(each)),
        appliances: await mapInSlices(appliances, (each) => applianceResponse(each)),
      };
    },
    removeHub: ({ name }) => administration.removeHub(name),
    portals: async () => ({ portals: toWire(administration.describePortals()) }),
    checkPortal: async ({ name }) => ({ checks: await administration.checkPortal(name) }),
    async addPortal({ client_secret: secret, ...portal }, afterwards) {
      const added = await administration.addPortal({
        ...portal,
        clientSecret: secret === null ? null : new Secret(secret),
      });
      if (added.kind !== 'added') throw portalNotAdded(portal.name, added);
      afterwards(added.reload.start);
      return { reload: added.reload.id, checks: added.checks };
    },
    async removePortal({ name }, afterwards) {
      const { id, start } = await administration.removePortal(name);
      afterwards(start);
      return { reload: id };
    },
    testNotices: () => administration.testNotices(),
    authority: () => administration.caStatus(),
    rotateAuthority: ({ keep }) => administration.rotateCa(keep),
    keepOldAuthority: ({ keep }) => administration.setOldCaLifetime(keep),
    addAppliance: async ({ name, ignore_scope, ...choice }) =>
      credentialsResponse(
        await administration.addAppliance(name, { ...choice, ...(ignore_scope && { ignoresScope: true }) }),
      ),
    moveAppliance: async ({ name, connections }) =>
      applianceResponse(await administration.moveAppliance(name, connections)),
    renameAppliance: async ({ name, title }) => applianceResponse(await administration.renameAppliance(name, title)),
    renameConnection: async ({ name, title }) => connectionResponse(await administration.renameConnection(name, title)),
    addConnection: async ({ name, scope, portal }) =>
      connectionResponse(await administration.addConnection(name, scope, portal)),
    removeConnection: async ({ name, even_if_used }) => ({
      portal_told: await administration.removeConnection(name, even_if_used),
    }),
    importGrant: async ({ refresh_token, ...request }) =>
      connectionResponse(await administration.importGrant({ ...request, refreshToken: new Secret(refresh_token) })),
    removeAppliance: async ({ name }) => ({ portal_told: await administration.removeAppliance(name) }),
    rotateSecret: async ({ name, replace_keys }) =>
      credentialsResponse(await administration.rotateSecret(name, replace_keys)),
    approveAppliance: async ({ name, code, connection, portal }) =>
      applianceResponse(await administration.approveAppliance(name, code, connection, portal)),
    async invite(request) {
      const issued = await administration.invite(request);
      return toWire({ ...issued, token: issued.token.reveal() });
    },
    openRegistration: async ({ open_for }) => ({
      open_for,
      ...toWire(await administration.openRegistration(open_for)),
    }),
    pair: async ({ name }) => ({ pairing: await administration.pair(name) }),
    async pasteAddress({ name, address }) {
      const pairing = await administration.getOpenPairing(name);
      await administration.pasteAddress(pairing, address);
      const { status, lastFailure } = administration.getPairing(pairing);
      const isOpen = status.event === 'connecting' || status.event === 'waiting';
      return { pairing, failure: isOpen ? lastFailure : null };
    },
    label({ name }) {
      const { addressLink: byAddress, ...label } = administration.label(name);
      return toWire({ ...label, byAddress });
    },
    pairAll: () => administration.pairAll(),
    nextPairing: ({ id }) => administration.startNextPairing(id),
    unpair: async ({ name }) => ({ portal_told: await administration.unpair(name) }),
    async token({ name, min_ttl, rejected }) {
      const wanted = { minTtl: min_ttl * 1000, rejected: rejected === null ? null : new Secret(rejected) };
      const { accessToken, expiresIn, scope } = await administration.token(name, wanted);
      return {
        access_token: accessToken.reveal(),
        token_type: 'Bearer',
        expires_in: expiresIn,
        ...(scope === null ? {} : { scope }),
      };
    },
    history: ({ name }) => administration.history(name),
    refresh: async ({ name }) => connectionResponse(await administration.refresh(name)),
    setupCode: async () => setupCodeResponse(await administration.setupCode()),
    rotateSetupCode: async () => setupCodeResponse(await administration.rotateSetupCode()),
    rotateStoreKey: async () => toWire(await administration.rotateStoreKey()),
    takeSnapshot: () => administration.takeSnapshot(),
    backUp: ({ passphrase }) => administration.backUp(passphrase),
    async restore({ copy, passphrase }, afterwards) {
      const { report, restart } = await administration.restore(copy, passphrase);
      afterwards(restart);
      return toWire(report);
    },
    async reload(_, afterwards) {
      const { id, start } = await administration.reload();
      afterwards(start);
      return { reload: id };
    },
    reloadOutcome: ({ id }) => administration.reloadOutcome(id),
  };
}

/** The failure for a portal that was not added. */
function portalNotAdded(name: string, addition: Exclude<PortalAddition, { kind: 'added' }>): Failure {
  if (addition.kind !== 'client_rejected') {
    const [[key, problem] = ['', 'it is not valid']] = addition.problems;
    return new Failure('request_invalid', `${name} was not added: ${key}: ${problem}`);
  }
  const detail = addition.checks.find(({ name: check, result }) => check === 'client' && result === 'fail')?.detail;
  return new Failure('client_rejected', `${name} was not added: ${detail}`);
}

/** The public status of an appliance. What is unusual about its usage is in the conditions. */
function applianceResponse({ unusualUsage: _, unusualConnection: __, ...status }: ApplianceStatus): ApplianceResponse {
  return loginResponse(status);
}

/** The public status of a connection, with the names of the appliances that use it. */
function connectionResponse({ users, ...status }: ConnectionStatus): ConnectionResponse {
  return { ...loginResponse(status), appliances: users.map(({ name }) => name) };
}

/** The public status of a connection or an appliance. The locations of files are left out; they are in the messages. */
function loginResponse<Status extends LoginStatus>({
  credentialLocation: _,
  withoutRefreshToken: __,
  pairingFailed: failed,
  problem: found,
  ...status
}: Status) {
  const pairingFailed = failed && { ...failed, reason: publicReason(failed.reason) };
  const problem = found && { code: found.code, message: found.message, since: found.since };
  return toWire({ ...status, problem, ...(pairingFailed && { pairingFailed }) });
}

function credentialsResponse(issued: IssuedCredentials): CredentialsResponse {
  return toWire({ ...issued, clientSecret: issued.clientSecret.reveal() });
}

function setupCodeResponse({ code, pageUrl, stablePageUrl, signInUrl, signInExpiresIn }: SetupCode): SetupCodeResponse {
  return {
    code: code.reveal(),
    page: pageUrl,
    stable_page: stablePageUrl,
    sign_in: signInUrl.reveal(),
    expires_in: signInExpiresIn,
  };
}

/**
 * Merges the members of the body and of the path. A body that is no object is returned unchanged, and then rejected.
 */
function mergeParams(body: unknown, params: unknown): unknown {
  const members = body ?? {};
  return typeof members === 'object' && !Array.isArray(members) ? Object.assign({}, members, params) : members;
}

/** @throws Failure `request_invalid` */
function parseRequest<Schema extends v.GenericSchema>(schema: Schema, request: unknown): v.InferOutput<Schema> {
  const parsed = v.safeParse(schema, request);
  if (parsed.success) return parsed.output;
  const [issue] = parsed.issues;
  const member = v.getDotPath(issue) ?? 'the body';
  if (issue.expected === 'never') throw new Failure('request_invalid', `${member}: unknown member; leave it out`);
  if (issue.received === 'undefined') throw new Failure('request_invalid', `${member}: is missing; add it`);
  const found = SECRET_MEMBERS.includes(member) ? '' : ` (found ${issue.received})`;
  throw new Failure('request_invalid', `${member}: must be ${issue.expected ?? issue.message}${found}`);
}

function isRouteName(name: string): name is RouteName {
  return name in routes;
}
