import * as v from 'valibot';
import { urlHost } from '../system/addresses.ts';
import type { JsonObject } from '../system/http/openapi.ts';
import { version } from '../system/version.ts';
import { apiOperations, serveApi } from './api/api.ts';
import { consoleOperations } from './console/console.ts';
import { serveAuthorize } from './endpoints/authorize.ts';
import { serveDeviceAuthorization, serveDevicePage } from './endpoints/device.ts';
import { serveDiscovery, serveOverview } from './endpoints/discovery.ts';
import { serveCodeDelivery, serveCodePolling, serveConfig } from './endpoints/helper.ts';
import { serveIntrospection } from './endpoints/introspection.ts';
import { serveLogout } from './endpoints/logout.ts';
import { serveOAuth2Token } from './endpoints/oauth2-token.ts';
import { servePushedAuthorization } from './endpoints/pushed-authorization.ts';
import { serveRegistration } from './endpoints/registration.ts';
import {
  serveOAuth2Revocation,
  serveResourceMetadata,
  serveRevocation,
  serveToken,
  serveWhoami,
} from './endpoints/token.ts';
import { serveUserinfo } from './endpoints/userinfo.ts';
import { attachFaults } from './faults/attach-faults.ts';
import { FaultError, validateFault } from './faults/fault-body.ts';
import { Faults } from './faults/faults.ts';
import type { FaultOptions, FaultView } from './faults/kinds.ts';
import { OriginListener } from './faults/origin-listener.ts';
import type { LoggedRequest } from './http/logged-request.ts';
import { RequestLog } from './http/request-log.ts';
import { compressResponses, createServer } from './http/server.ts';
import { choiceOf } from './json.ts';
import type { Observations } from './oauth/client-audit.ts';
import { type WaitingDevice, waitingDevices } from './oauth/device-logins.ts';
import { collectFindings, type Findings } from './oauth/findings.ts';
import { type Poll, type WaitingLogin, waitingLogins } from './oauth/helper-flows.ts';
import { type IssuedGrant, REVOCABLE } from './oauth/issued-grants.ts';
import { SECRET_KINDS, type SecretKind } from './oauth/issued-secrets.ts';
import { issueToken } from './oauth/issuers.ts';
import { unverifiedClaim } from './oauth/jwt.ts';
import {
  approveDevice,
  DEVICE_APPROVAL,
  type DeviceApproval,
  LOGIN_REQUEST,
  type LoginRequest,
  type LoginResult,
  login,
} from './oauth/login.ts';
import type { EmulatorOptions } from './options.ts';
import { createPortal, type EmulatedPortal } from './portal.ts';
import { type EffectiveSettings, resolveSettings } from './settings/effective-settings.ts';
import type { SettingOptions, Settings } from './settings/settings.ts';
import { checkMembers, OptionError, pickSettings } from './settings/validation.ts';
import { StateFile } from './state-file.ts';
import { createTlsCredentials, writeCaFile } from './tls.ts';
import type { ClockView } from './virtual-clock.ts';

/** The public view of a grant, without its tokens. */
export type GrantView = Readonly<
  Pick<IssuedGrant, 'id' | 'clientId' | 'user' | 'scope' | 'createdAt' | 'refreshedAt' | 'generation' | 'revoked'>
>;

/** A running portal emulator. */
export interface Emulator extends AsyncDisposable {
  /** The origin of the helper endpoints (`base_url` in docs/portal.md), without a trailing slash. */
  readonly baseUrl: string;
  /**
   * The origin of the login page and the token endpoint (`frontend_url`), without a trailing slash. It is the issuer of
   * the generic OAuth 2.0 server.
   */
  readonly frontendUrl: string;
  /** The ID of the first client. */
  readonly clientId: string;
  /** The secret of the first client; empty if it has none. */
  readonly clientSecret: string;
  /** The address of the console page. The paths of the emulator's API begin with it. */
  readonly consoleUrl: string;
  /** The certificate of the emulator's private CA as PEM if `tls` is on, otherwise null. */
  readonly ca: string | null;
  /** A copy of the request log, oldest first. */
  readonly requests: readonly LoggedRequest[];
  /** A copy of the counts of the client audit. */
  readonly observations: Readonly<Observations>;
  /** The polls of the code_url with this state, oldest first. @throws OptionError if the state is no text */
  polls(state: string): readonly Poll[];
  /**
   * Logs a user in, or refuses, without a browser: by the URL that it would open, or by the helper's state, whose
   * code_url serves the code then.
   * @throws LoginError if the URL, the state or the user is invalid; OptionError if a member is unknown
   */
  login(request: LoginRequest): Promise<LoginResult>;
  /** The open login pages of the helper flow at which the user has neither logged in nor refused, oldest first. */
  logins(): readonly WaitingLogin[];
  /**
   * Allows or refuses the access of a device without a browser (RFC 8628). The device gets it with its next poll.
   * @throws LoginError if the user code is unknown, expired or already decided, or if the user is unknown; OptionError
   *   if a member is unknown
   */
  approveDevice(approval: DeviceApproval): Promise<void>;
  /** The devices that wait for their user, who has neither logged in nor refused, oldest first. */
  devices(): readonly WaitingDevice[];
  /** What clients did wrong, and how they polled. */
  findings(): Findings;
  /**
   * Invalidates everything issued, clears the log, the findings, the faults and the clock's offset, and restores the
   * initial settings. Ports, clients, users and the CA stay.
   */
  reset(): Promise<void>;
  /** All grants, least recently refreshed first. */
  grants(): readonly GrantView[];
  /**
   * Revokes a grant with all its tokens, or only the access tokens issued so far.
   * @returns false if there is no such grant
   * @throws OptionError if `grantId` is no text, or `what` is neither
   */
  revoke(grantId: string, what?: (typeof REVOCABLE)[number]): boolean;
  /**
   * A signed access token (RFC 9068) with these claims beside or instead of `iss`, `sub`, `aud`, `client_id`, `iat` and `exp`, without
   * a login: for an API that verifies it with the JWK Set. There is no grant behind it.
   * @throws OptionError if the claims are no object
   */
  issueToken(claims?: Readonly<Record<string, unknown>>): string;
  /** Signs JWTs with a new key. The JWK Set still has the former one, until the next rotation. */
  rotateSigningKey(): void;
  /** The emulator's time, and its offset from the underlying clock. */
  readonly clock: ClockView;
  /**
   * Advances the emulator's clock. Codes, states and tokens whose lifetime has passed by then are expired, and the
   * `Date` header and the log use the new time.
   * @throws ClockError if `seconds` is negative or not a number, or if the total offset would exceed a hundred years
   */
  advance(seconds: number): void;
  /** A copy of the current settings. */
  readonly settings: Settings;
  /**
   * Changes settings for later requests; requests in progress keep the settings that they began with. If one value is
   * invalid, nothing changes.
   * @throws OptionError if a value is invalid
   */
  change(change: SettingOptions): void;
  /**
   * Adds a fault, in force immediately.
   * @throws FaultError if the fault is invalid; the message names the member, the value found and the values allowed
   */
  addFault(fault: FaultOptions): FaultView;
  /** A copy of all faults, including used-up ones, oldest first. */
  readonly faults: readonly FaultView[];
  /**
   * Removes a fault; an origin that it kept down listens again.
   * @returns false if no fault has this ID
   * @throws OptionError if `id` is no text
   */
  removeFault(id: string): Promise<boolean>;
  /** Removes all faults. */
  clearFaults(): Promise<void>;
  /**
   * The states, codes and tokens issued (the newest 200,000), of these kinds or of all, to search logs for them.
   * @throws OptionError if there is no such kind
   */
  secretsIssued(...kinds: SecretKind[]): string[];
  /** Stops both origins and closes open connections. */
  close(): Promise<void>;
}

/**
 * Starts a portal emulator: the endpoints of docs/portal.md on two origins of this machine, with its state in memory or
 * in a file.
 * @throws OptionError if an option is invalid; StateFileError if the state file can't be used; the listener's error if
 *   it can't listen, for example because the port is taken
 */
export async function startEmulator(options: EmulatorOptions = {}): Promise<Emulator> {
  const settings = resolveSettings(options);
  const file = settings.state === null ? null : await StateFile.open(settings.state);
  try {
    return await startWithSettings(file === null ? settings : restoreClient(options, settings, file), file);
  } catch (error) {
    file?.close();
    throw error;
  }
}

async function startWithSettings(settings: EffectiveSettings, file: StateFile | null): Promise<Emulator> {
  const addresses = { base: '', frontend: '' };
  const portal = createPortal(settings, () => addresses, file);
  const log = new RequestLog();

  const tls = settings.tls ? await createTlsCredentials(file, settings.hostNames, portal.now()) : null;
  const base = createServer(portal, log, tls);
  serveConfig(base);
  serveCodePolling(base);
  serveCodeDelivery(base);
  serveRevocation(base);
  serveWhoami(base);
  serveResourceMetadata(base);
  serveOverview(base);

  const frontend = createServer(portal, log, tls, settings.issuers);
  serveAuthorize(frontend);
  serveToken(frontend);
  serveOverview(frontend);
  serveDiscovery(frontend);
  servePushedAuthorization(frontend);
  serveOAuth2Token(frontend);
  serveDeviceAuthorization(frontend);
  serveDevicePage(frontend);
  serveOAuth2Revocation(frontend);
  serveIntrospection(frontend);
  serveRegistration(frontend);
  serveUserinfo(frontend);
  serveLogout(frontend);

  const listeners = {
    base: new OriginListener(base.server, settings.tls),
    frontend: new OriginListener(frontend.server, settings.tls),
  };
  const faults = new Faults(settings.seed, settings.clients, listeners, () => portal.changes.emitChange('faults'));
  attachFaults(base, faults, listeners.base, log);
  attachFaults(frontend, faults, listeners.frontend, log);
  compressResponses(base);
  compressResponses(frontend);
  const reset = async () => {
    await faults.reset();
    portal.reset();
    log.clear();
    portal.changes.emitChange('requests');
  };
  const api = { portal, faults, log, reset, describe: () => describe(portal) };
  serveApi(base, [...apiOperations, ...consoleOperations], api);

  const close = async () => {
    await Promise.all([listeners.base.close(), listeners.frontend.close()]);
    await Promise.all([base.close(), frontend.close()]);
    file?.close();
  };
  try {
    await Promise.all([base.ready(), frontend.ready()]);
    addresses.base = originUrl(settings, await listeners.base.listen(settings.host, settings.port));
    addresses.frontend = originUrl(settings, await listeners.frontend.listen(settings.host, settings.frontendPort));
    if (tls !== null && settings.caFile !== null) await writeCaFile(settings.caFile, tls.ca);
    for (const fault of settings.faults) faults.add(validateFault(fault));
    portal.save();
  } catch (error) {
    await close();
    if (error instanceof FaultError) throw new OptionError(`faults: ${error.message}`, { cause: error });
    throw error;
  }

  return {
    baseUrl: addresses.base,
    frontendUrl: addresses.frontend,
    clientId: settings.firstClient.id,
    clientSecret: settings.firstClient.secret ?? '',
    consoleUrl: `${addresses.base}/_emulator/`,
    ca: tls?.ca ?? null,
    get requests() {
      return log.values();
    },
    get observations() {
      return portal.audit.observations;
    },
    polls(state) {
      checkMembers({ state }, { state: v.string() });
      return portal.helperFlows.find(unverifiedClaim(state, 'jti') ?? '')?.polls.slice() ?? [];
    },
    async login(request) {
      checkMembers(request, LOGIN_REQUEST);
      const result = login(portal, request);
      portal.save();
      return result;
    },
    async approveDevice(approval) {
      checkMembers(approval, DEVICE_APPROVAL);
      approveDevice(portal, approval);
      portal.save();
    },
    devices: () => waitingDevices(portal.deviceLogins),
    logins: () => waitingLogins(portal.helperFlows, portal.now()),
    findings: () => collectFindings(portal),
    reset,
    grants: () => portal.grants.all().map(toGrantView),
    revoke(grantId, what = 'grant') {
      checkMembers({ grantId, what }, { grantId: v.string(), what: choiceOf(REVOCABLE) });
      const grant = portal.grants.find(grantId);
      if (grant === undefined) return false;
      portal.grants.revoke(grant, what);
      portal.save();
      return true;
    },
    issueToken(claims = {}) {
      checkMembers({ claims }, { claims: v.record(v.string(), v.unknown()) });
      return issueToken(portal, claims);
    },
    rotateSigningKey() {
      portal.signingKey.rotate();
      portal.save();
    },
    get clock() {
      return portal.clock.view();
    },
    advance(seconds) {
      portal.clock.advance(seconds);
      portal.save();
    },
    get settings() {
      return pickSettings(portal.settings);
    },
    change: (change) => portal.change(change),
    addFault: (fault) => faults.add(validateFault(fault)),
    get faults() {
      return faults.all();
    },
    async removeFault(id) {
      checkMembers({ id }, { id: v.string() });
      return faults.remove(id);
    },
    clearFaults: () => faults.clear(),
    secretsIssued(...kinds) {
      checkMembers({ kinds }, { kinds: v.array(choiceOf(SECRET_KINDS)) });
      return portal.issuedSecrets.list(kinds);
    },
    close,
    [Symbol.asyncDispose]: close,
  };
}

/** If no client is configured, uses the generated client of the state file, so that its credentials stay valid. */
function restoreClient(options: EmulatorOptions, settings: EffectiveSettings, file: StateFile): EffectiveSettings {
  if (options.clients !== undefined) return settings;
  const { id, secret } = settings.firstClient;
  const client = file.state.client ?? { id, secret };
  file.save({ client });
  return resolveSettings(options, { id: client.id, secret: client.secret ?? undefined });
}

function toGrantView({
  id,
  clientId,
  user,
  scope,
  createdAt,
  refreshedAt,
  generation,
  revoked,
}: IssuedGrant): GrantView {
  return { id, clientId, user, scope, createdAt, refreshedAt, generation, revoked };
}

/** Imported on demand, because most runs never need it. */
async function describe(portal: EmulatedPortal): Promise<JsonObject> {
  const { openApiDocument } = await import('./openapi/document.ts');
  return openApiDocument(portal.origins(), version());
}

function originUrl({ publicHost: host, tls }: EffectiveSettings, port: number): string {
  return `${tls ? 'https' : 'http'}://${urlHost(host)}:${port}`;
}
