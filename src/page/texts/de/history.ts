import type { history as english } from '../en/history.ts';

export const history: typeof english = {
  heading: 'Verlauf',
  nothing: 'Bisher ist nichts geschehen.',
  older: 'Ältere Einträge',
  days: 'Die letzten 14 Tage',
  connected: 'Verbunden',
  failing: 'Zeitweise gestört',
  needsPairing: 'Anmeldung nötig',
  unknown: 'Nicht verbunden oder nichts bekannt',
  summary: (connected, failing, needsPairing) =>
    `Die letzten 14 Tage: verbunden an ${connected}, zeitweise gestört an ${failing}, Anmeldung nötig an ${needsPairing}.`,
  kinds: {
    paired: 'Durch eine Anmeldung verbunden',
    pairing_failed: 'Eine Anmeldung führte zu nichts',
    unpaired: 'Getrennt',
    refreshed: 'Erneuert',
    refresh_failed: 'Konnte nicht erneuert werden',
    token_refused: 'Die Cloud hat den Zugang abgelehnt, sagt das Gerät',
  },
  times: (count) => (count === 1 ? '' : `${count}-mal`),
  why: {
    refused_by_user: 'der Zugang wurde am Portal abgelehnt',
    expired: 'die Zeit dafür lief ab',
    replaced: 'eine neuere wurde stattdessen begonnen',
    cancelled: 'sie wurde abgebrochen',
    foreign_origin: 'das Portal nannte eine fremde Adresse',
    code_refused: 'das Portal nahm sie nicht an',
    portal_unreachable: 'das Portal war nicht erreichbar',
    portal_deferred: 'das Portal bat um Geduld',
    portal_rejected: 'das Portal hat den Hub abgewiesen',
    answer_lost: 'eine Antwort ging unterwegs verloren',
    misconfigured: 'das Portal nahm die Zugangsdaten des Hubs nicht an',
    clock_unknown: 'der Hub kannte die Zeit nicht',
    store_unwritable: 'der Hub konnte es nicht speichern',
    refused: 'das Portal hat den Zugang beendet',
  },
};
