import type { Appliances } from '../broker/appliances.ts';
import type { DeviceFlows } from '../broker/device-flows.ts';
import type { Grants } from '../broker/grants.ts';
import type { HandOuts } from '../broker/hand-outs.ts';
import type { Pairings } from '../broker/pairings.ts';
import type { PortalClock } from '../broker/portal-clock.ts';
import type { Registrations } from '../broker/registrations.ts';
import type { Rounds } from '../broker/rounds.ts';
import type { Sessions } from '../broker/sessions.ts';
import type { Surroundings } from '../broker/surroundings.ts';
import type { TimeInquiry } from '../broker/time-inquiry.ts';
import { type Instant, trueTime } from '../core/clock.ts';
import type { LanService } from '../core/lan-service.ts';
import { linkFor } from '../core/pairing.ts';
import type { Tally } from '../metrics/tally.ts';
import { sha256 } from '../system/compare.ts';
import { whenThere } from '../system/when-there.ts';

/** What the home network is served from. */
export interface LanServiceContext {
  readonly surroundings: Surroundings;
  readonly started: Instant;
  /** The pin of the certificate that appliances pin, as it is now. */
  caFingerprint(): string;
  readonly appliances: Appliances;
  readonly grants: Grants;
  readonly handOuts: HandOuts;
  readonly pairings: Pairings;
  readonly rounds: Rounds;
  readonly deviceFlows: DeviceFlows;
  readonly sessions: Sessions;
  readonly registrations: Registrations;
  readonly portalClock: PortalClock;
  readonly timeInquiry: TimeInquiry;
  /** The ids of the appliances that the run before has left. */
  readonly knownBefore: ReadonlySet<string>;
  /** Counts the answers to appliances. */
  readonly tally: Pick<Tally, 'handedOut'>;
  /** An appliance may have introduced itself: somebody may have to approve it. */
  introduced(): void;
  /** Resolves when the pairings of the last run are taken up. */
  readonly ready: Promise<void>;
}

/** How long an appliance is to wait while the hub can't write its store, in seconds. */
const STORE_RETRY = 60;

/** Serves the home network: what the OAuth endpoints and the pages on it offer. */
export function lanService(context: LanServiceContext): LanService {
  const { appliances, grants, handOuts, pairings, rounds, deviceFlows, sessions, registrations, portalClock, ready } =
    context;
  const { clock } = context.surroundings;
  const nameOf = (id: string) => appliances.byId(id)?.name ?? 'The appliance';

  return {
    client: (clientId) => appliances.byClientId(clientId),
    times: () =>
      portalClock.told.flatMap((told) => {
        const [now, started] = [trueTime(told, clock.now()), trueTime(told, context.started)];
        return now === null || started === null ? [] : [{ now, started }];
      }),
    confirmTime: () => context.timeInquiry.confirm(),
    knewBefore: ({ id }) => context.knownBefore.has(id),
    heard: ({ id }) => registrations.heard(id),

    handOut: ({ id }, wish) =>
      whenThere(handOuts.handOut(id, wish.scope, wish), (handOut) => {
        context.tally.handedOut(id, handOut.kind);
        return handOut;
      }),
    async revoke({ id }, token) {
      const end = await sessions.end(id, token);
      if (end === 'none') await grants.distrust(id, token);
      return end === 'unwritten' ? { kind: 'unavailable', retryAfter: STORE_RETRY } : { kind: 'revoked' };
    },

    async beginDeviceFlow(appliance, scope) {
      await ready;
      return deviceFlows.begin(appliance, scope);
    },
    async pollDeviceFlow({ id }, deviceCode) {
      await ready;
      return deviceFlows.poll(id, deviceCode);
    },
    openSession: ({ id }, deviceCode) => sessions.begin(id, sha256(deviceCode)),
    hasSession: ({ id }, refreshToken) => sessions.has(id, refreshToken),

    get caFingerprint() {
      return context.caFingerprint();
    },
    get isRegistrationOpen() {
      return registrations.openFor > 0;
    },
    isInvite: (token) => registrations.isInvite(token),
    async register(introduction, token, from) {
      const registration = await registrations.register(introduction, token, from);
      context.introduced();
      return registration;
    },

    async pairingByUserCode(userCode) {
      await ready;
      const pairing = deviceFlows.byUserCode(userCode);
      return pairing && { pairing, appliance: nameOf(pairing.appliance) };
    },
    openLink: (userCode) => deviceFlows.openLink(userCode),
    async pairingByShortKey(key) {
      await ready;
      const run = pairings.byShortKey(key);
      if (run === undefined) return null;
      const { pairing, redirect } = run;
      const authorizeUrl = linkFor(pairing.step, redirect)?.authorizeUrl ?? null;
      return { pairing, appliance: nameOf(pairing.appliance), authorizeUrl };
    },
    async receiveCallback(nonce, callback, { pass, ...browser }) {
      await ready;
      const pairing = await pairings.receive(nonce, callback, browser);
      if (pairing === null) return null;
      const code = callback.kind === 'code' ? callback.code : null;
      const login = code && pairings.get(pairing.id).standingOf(code);
      return { pairing, appliance: nameOf(pairing.appliance), login, round: rounds.forBrowser(nonce, code, pass) };
    },
    sentMark: (pairing) => pairings.sentMark(pairing),
    async goOnInRound(nonce, again, pass) {
      await ready;
      return rounds.goOn(nonce, again, pass);
    },
  };
}
