import { urlHost } from '../system/addresses.ts';
import { systemTimers } from '../system/clock.ts';
import type { JsonObject } from '../system/http/openapi.ts';
import { version } from '../system/version.ts';
import { serveApi } from './api/api.ts';
import type { Observations } from './audit/client-audit.ts';
import { collectFindings, type Findings } from './audit/findings.ts';
import { serveAuthorize } from './endpoints/authorize.ts';
import { serveCodeGet, serveCodeSet, serveConfig } from './endpoints/helper.ts';
import { serveToken, serveWhoami } from './endpoints/token.ts';
import { attachFaults } from './faults/attach-faults.ts';
import { FaultError, validateFault } from './faults/fault-body.ts';
import { Faults } from './faults/faults.ts';
import type { FaultOptions, FaultView } from './faults/kinds.ts';
import { OriginListener } from './faults/origin-listener.ts';
import type { LoggedRequest } from './http/logged-request.ts';
import { RateLimiter } from './http/rate-limit.ts';
import { RequestLog } from './http/request-log.ts';
import { createServer } from './http/server.ts';
import { StateFile } from './memory/state-file.ts';
import { type Poll, type WaitingLogin, waitingLogins } from './oauth/helper-flows.ts';
import { unverifiedStateId } from './oauth/helper-state.ts';
import type { IssuedGrant } from './oauth/issued-grants.ts';
import type { SecretKind } from './oauth/issued-secrets.ts';
import { type LoginRequest, type LoginResult, login } from './oauth/login.ts';
import { createPortal, type EmulatedPortal, resetPortal } from './portal.ts';
import { type EffectiveSettings, resolveSettings } from './settings/effective-settings.ts';
import type { EmulatorOptions } from './settings/options.ts';
import type { SettingOptions, Settings } from './settings/settings.ts';
import { OptionError, pickSettings } from './settings/validation.ts';
import { createTlsCredentials, writeCaFile } from './tls.ts';
import type { ClockView } from './virtual-clock.ts';

/** A grant as the outside may see it: no tokens. */
export type GrantView = Readonly<
  Pick<IssuedGrant, 'id' | 'clientId' | 'user' | 'scope' | 'createdAt' | 'refreshedAt' | 'generation' | 'revoked'>
>;

/** A running portal emulator. */
export interface Emulator extends AsyncDisposable {
  /** {base_url} of the specification, without a trailing slash. */
  readonly baseUrl: string;
  /** {frontend_url} of the specification, without a trailing slash. */
  readonly frontendUrl: string;
  /** The first client's. */
  readonly clientId: string;
  readonly clientSecret: string;
  /** Where the emulator's own pages and API live. */
  readonly consoleUrl: string;
  /** With `tls`: the certificate of the emulator's private CA, PEM; else null. */
  readonly ca: string | null;
  /** What clients sent and were answered, the oldest first; a copy. */
  readonly requests: readonly LoggedRequest[];
  /** What the audit of clients counts; a copy. */
  readonly observations: Readonly<Observations>;
  /** The polls of the code_url with this state, the oldest first. */
  polls(state: string): readonly Poll[];
  /**
   * Logs a user in, or refuses, without a browser; afterwards the helper has the code.
   * @throws LoginError where state or user are no good
   */
  login(request: LoginRequest): Promise<LoginResult>;
  /** The login pages that are open and wait for somebody, the oldest first. */
  logins(): readonly WaitingLogin[];
  /** What the author of a client wants to know after a test. */
  findings(): Findings;
  /**
   * As at the start: everything issued is forgotten and dead, the log, the findings, faults and the clock's offset are
   * gone, the settings are the start's. Ports, clients, users and the CA stay.
   */
  reset(): Promise<void>;
  /** All grants, the one that was refreshed longest ago first. */
  grants(): readonly GrantView[];
  /**
   * Revokes a grant with all its tokens, or only the access tokens issued so far.
   * @returns false where there is no such grant
   */
  revoke(grantId: string, what?: 'grant' | 'access_tokens'): boolean;
  /** The emulator's time, and how far it is ahead of the clock that it was given. */
  readonly clock: ClockView;
  /**
   * Puts the emulator's time ahead by so many seconds: codes, states and tokens expire at once, and the `Date` header
   * and the log follow.
   * @throws ClockError where that is negative, or a hundred years in all
   */
  advance(seconds: number): void;
  /** How the portal behaves right now; a copy. */
  readonly settings: Settings;
  /**
   * Changes how the portal behaves from now on; requests under way go on as they began. Either all of it is changed or
   * nothing.
   * @throws OptionError where a value is no good
   */
  change(change: SettingOptions): void;
  /**
   * Adds a fault that clients meet from now on.
   * @throws FaultError where it can't be; the message names the member, what was found and what is allowed
   */
  addFault(fault: FaultOptions): FaultView;
  /** The faults that were added, spent ones too, the oldest first; a copy. */
  readonly faults: readonly FaultView[];
  /** Takes a fault away; an origin that it kept down listens again. @returns false where there is none with this id */
  removeFault(id: string): Promise<boolean>;
  /** Takes all faults away. */
  clearFaults(): Promise<void>;
  /** Every state, code and token issued (the newest 200,000), of these kinds or of all: to search logs for them. */
  secretsIssued(...kinds: SecretKind[]): string[];
  /** Stops both origins and cuts open connections. */
  close(): Promise<void>;
}

/**
 * Starts a portal emulator: the endpoints of the specification on two origins of this machine, with a state of its own
 * in memory, or in a file.
 * @throws OptionError where an option is no good; StateFileError where the state file is no good; the listener's own error where a port is taken
 */
export async function startEmulator(options: EmulatorOptions = {}): Promise<Emulator> {
  const given = resolveSettings(options);
  const file = given.state === null ? null : await StateFile.open(given.state);
  try {
    return await startWithSettings(file === null ? given : restoreClient(options, given, file), file);
  } catch (error) {
    file?.close();
    throw error;
  }
}

async function startWithSettings(settings: EffectiveSettings, file: StateFile | null): Promise<Emulator> {
  const addresses = { base: '', frontend: '' };
  const portal = createPortal(settings, () => addresses, file);
  const log = new RequestLog();
  const rates = new RateLimiter();

  const tls = settings.tls ? await createTlsCredentials(file, { ...settings, now: portal.now() }) : null;
  const base = createServer(portal, log, rates, tls);
  serveConfig(base);
  serveCodeGet(base);
  serveCodeSet(base);
  serveWhoami(base);

  const frontend = createServer(portal, log, rates, tls);
  serveAuthorize(frontend);
  serveToken(frontend);

  const listeners = {
    base: new OriginListener(base.server, settings.tls),
    frontend: new OriginListener(frontend.server, settings.tls),
  };
  const faults = new Faults(settings.seed, settings.clients, listeners, () => portal.changes.emitChange('faults'));
  attachFaults(base, faults, listeners.base, log);
  attachFaults(frontend, faults, listeners.frontend, log);
  const reset = async () => {
    await faults.reset();
    resetPortal(portal);
    rates.reset();
    log.clear();
    portal.changes.emitChange('requests');
  };
  serveApi(base, { portal, faults, log, timers: systemTimers, reset, describe: () => describe(portal) });

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
    clientSecret: settings.firstClient.secret,
    consoleUrl: `${addresses.base}/_emulator/`,
    ca: tls?.ca ?? null,
    get requests() {
      return log.values();
    },
    get observations() {
      return portal.audit.observations;
    },
    polls: (state) => portal.helperFlows.find(unverifiedStateId(state) ?? '')?.polls.values() ?? [],
    async login(request) {
      const result = await login(portal, request);
      portal.save();
      return result;
    },
    logins: () => waitingLogins(portal.helperFlows, portal.now()),
    findings: () => collectFindings(portal),
    reset,
    grants: () => portal.grants.all().map(toGrantView),
    revoke(grantId, what = 'grant') {
      const grant = portal.grants.find(grantId);
      if (grant === undefined) return false;
      portal.grants.revoke(grant, what);
      portal.save();
      return true;
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
    change: (change) => portal.runtimeSettings.update(change),
    addFault: (fault) => faults.add(validateFault(fault)),
    get faults() {
      return faults.all();
    },
    removeFault: (id) => faults.remove(id),
    clearFaults: () => faults.clear(),
    secretsIssued: (...kinds) => portal.issuedSecrets.list(kinds),
    close,
    [Symbol.asyncDispose]: close,
  };
}

/** Where no client was named, the one that was made up before is back. */
function restoreClient(options: EmulatorOptions, given: EffectiveSettings, file: StateFile): EffectiveSettings {
  if (options.clients !== undefined) return given;
  const { id, secret } = given.firstClient;
  const client = file.state.client ?? { id, secret };
  file.save({ client });
  return resolveSettings({ ...options, clients: [client] });
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

/** Made when it is first asked for: most runs never do. */
async function describe(portal: EmulatedPortal): Promise<JsonObject> {
  const { openApiDocument } = await import('./openapi/document.ts');
  return openApiDocument(portal.origins(), version());
}

function originUrl({ publicHost: host, tls }: EffectiveSettings, port: number): string {
  return `${tls ? 'https' : 'http'}://${urlHost(host)}:${port}`;
}
