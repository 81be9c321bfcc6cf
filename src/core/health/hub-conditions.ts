import { HOUR } from '../clock.ts';
import { keysOf } from '../keys.ts';
import { NO_PORTAL } from '../portals/portal-status.ts';

/** What surfaces say of a condition of the hub as a whole. The page has its texts in `page/texts/`, by the same code. */
export interface HubConditionRecord {
  /** `error`: it stays broken until a person acts; `warning`: it may resolve itself, or breaks nothing while it is open. */
  readonly severity: 'error' | 'warning';
  /** What a person can do, in English, without a full stop. */
  readonly advice: string;
  /** For systemd's status line, about the hub. */
  readonly statusLine: string;
  /** What has happened, in Markdown, for docs/notices.md. */
  readonly meaning: string;
  /** For how long the hub sees it before it sends the notice, in ms; left out if it sends it at once. */
  readonly delay?: number;
  /**
   * For how long after a restart its notice stays open although the condition is not seen yet, in ms; left out if for as
   * long as `delay`.
   */
  readonly keptAfterRestart?: number;
  /** Its notice is not repeated daily; left out if it is. */
  readonly isReportedOnce?: true;
  /** All hubs of a site see it, and one of them reports it; left out if each hub reports its own. */
  readonly isOfSite?: true;
}

const MINUTE = 60_000;

const records = {
  certificate_expired: {
    severity: 'error',
    advice:
      'Renew the certificate of lan.certificate_file; if an ACME client renews it, see the log of that client; the hub loads the new files within a minute',
    statusLine: 'its certificate has expired',
    meaning: "the owner's own certificate ([certificate.md](certificate.md)) has expired",
    // It is known again when the clock is confirmed.
    keptAfterRestart: 2 * HOUR,
  },
  certificate_expiring: {
    severity: 'warning',
    advice:
      'Renew the certificate of lan.certificate_file before then; if an ACME client renews it, see the log of that client; the hub loads the new files within a minute',
    statusLine: 'its certificate expires soon',
    meaning:
      "the owner's own certificate expires in less than two weeks, or in less than a sixth of its lifetime if that is shorter, and was not renewed",
    keptAfterRestart: 2 * HOUR,
  },
  hub_id_taken: {
    severity: 'error',
    advice: 'Find the other hub: if one is a copy of the other, switch the copy off and set it up from scratch',
    statusLine: 'another hub on the network has its id',
    meaning: 'another hub on the network has the same id and key',
  },
  hub_missing: {
    severity: 'warning',
    advice:
      'Check the power and the network of that hub, and its log; if it was removed for good, run "latchkey site remove NAME"',
    statusLine: 'another hub of the site is missing',
    meaning:
      'another hub of the [site](configuration.md#several-hubs-on-one-database) has not been seen for ten minutes. One hub reports it for all. The notice ends when the hub is back, was removed from the list, or has been missing for 30 days',
    isOfSite: true,
  },
  hub_name_claimed: {
    severity: 'warning',
    advice:
      'Find the device with this address, and rename it or disconnect it from the network; appliances are safe, because they check the CA pin (ca_fingerprint)',
    statusLine: 'another device on the network claims its name',
    meaning: "another device, which does not have the hub's key, claims the hub's name",
    delay: 10 * MINUTE,
  },
  not_announced: {
    severity: 'warning',
    advice:
      'See the hub\'s log (with systemd: "sudo journalctl -u latchkey") for why mDNS does not work; appliances that know the hub\'s address are still served',
    statusLine: "can't be found by mDNS",
    meaning: 'the hub is not announced over mDNS',
    delay: 10 * MINUTE,
  },
  no_portal: {
    severity: 'warning',
    advice: NO_PORTAL.advice,
    statusLine: 'has no portal yet',
    meaning: 'nobody has chosen a portal for the hub yet, so no appliance can be connected',
    // Whoever sets the hub up chooses one soon.
    delay: HOUR,
    isReportedOnce: true,
  },
  client_rejected: {
    severity: 'error',
    advice:
      'Correct this before anybody logs in, because no login can succeed before; "latchkey portals check" shows what the portal answers',
    statusLine: 'a portal does not accept it as its client',
    meaning:
      'a portal does not accept the `client_id` and the client secret of the configuration. The hub asks each portal once when these are new, and hears it from a login that fails because of them ([command-line.md](command-line.md#portals)). If a connection has this problem, its notice is `misconfigured`',
    // A restart asks again, and a portal may be out of reach for a while.
    keptAfterRestart: HOUR,
  },
  portal_moved: {
    severity: 'error',
    advice:
      'Ask its operator whether it has moved: if it has, confirm it in the configuration as this message says; if not, its metadata may have been changed by somebody else, and the hub goes on using the former address',
    statusLine: 'a portal has moved, which a person must confirm',
    meaning:
      'the metadata of a portal with an `issuer` has moved an endpoint to another origin than before ([clouds.md](clouds.md#a-cloud-that-moves)). The hub uses the former one until a person confirms the new one',
  },
  database_unavailable: {
    severity: 'warning',
    advice: 'Check the database server and the network between it and the hub; the hub then continues automatically',
    statusLine: "can't reach the database of the site",
    meaning: "the hub can't use the database of its site",
    delay: 10 * MINUTE,
  },
  store_changed: {
    severity: 'error',
    advice:
      'Remove the appliances that this message names, add them again and pair them; if somebody else had access to the hub or its SD card, follow docs/stolen-card.md',
    statusLine: 'its store was damaged, or changed by something else',
    meaning: 'entries of the store were damaged, or changed by something other than the hub ([state.md](state.md))',
  },
  store_recovered: {
    severity: 'warning',
    advice:
      'If you have just restored a backup of the hub\'s files, this is expected; otherwise check the disk or SD card, and replace it if this happens again; "latchkey status" shows what must be paired again',
    statusLine: 'its store was damaged or missing, and rebuilt',
    meaning: 'the store was damaged or missing, and the hub has rebuilt it',
    isReportedOnce: true,
  },
  store_slow: {
    severity: 'warning',
    advice:
      'Make a backup now ("latchkey backup FILE"), and keep the file on another machine; then replace the SD card or disk, unless another program on this machine keeps it busy',
    statusLine: 'its SD card or disk is slow, and may fail',
    meaning:
      'most commits of the store take longer than a second ([details](state.md#a-slow-disk)); the message says how long',
    delay: 10 * MINUTE,
    // A restart forgets how long commits took, and a hub with one login commits twice an hour.
    keptAfterRestart: 2 * HOUR,
  },
  store_unwritable: {
    severity: 'error',
    advice:
      'Free space on the disk with the file that this message names, or replace the disk; the hub then continues automatically',
    statusLine: "can't write its store",
    meaning:
      "the hub can't write its store, as it noticed itself or because a refresh failed. If new tokens are only in memory, the message says so: do not switch the hub off then",
  },
  store_volatile: {
    severity: 'warning',
    advice:
      'Turn the overlay file system off ("sudo raspi-config": Performance Options, Overlay File System) and reboot, or keep the state directory on a disk (docs/state.md); until then, "latchkey backup FILE" saves everything in a file for another machine',
    statusLine: 'nothing that it stores outlives a reboot',
    meaning:
      'the state directory is in memory, or on an overlay file system whose changes are, so nothing that the hub stores outlives a reboot ([state.md](state.md#a-card-that-forgets))',
  },
  wrong_setup_codes: {
    severity: 'warning',
    advice:
      'If this was not you, find the device with this address and disconnect it from your network; the code cannot be guessed, and other devices can sign in as before',
    statusLine: 'wrong setup codes were entered',
    meaning:
      "somebody has typed so many wrong setup codes on the hub's page that the device must wait. The notice ends after two hours without wrong codes",
    isReportedOnce: true,
    // A restart forgets the wrong codes; a burst would last as long without one.
    keptAfterRestart: 2 * HOUR,
  },
} satisfies Readonly<Record<string, HubConditionRecord>>;

export type HubConditionCode = keyof typeof records;

/** Every condition of the hub as a whole, by its code, which is the code of its notice too. */
export const HUB_CONDITIONS: Readonly<Record<HubConditionCode, HubConditionRecord>> = records;

export const HUB_CONDITION_CODES = keysOf(HUB_CONDITIONS);

/** The codes of `hub.problems` in `status`: somebody who types wrong setup codes is none. */
export const HUB_PROBLEM_CODES = HUB_CONDITION_CODES.filter((code) => code !== 'wrong_setup_codes');
export type HubProblemCode = (typeof HUB_PROBLEM_CODES)[number];
