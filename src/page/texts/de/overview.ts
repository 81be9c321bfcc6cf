import type * as english from '../en/overview.ts';

export const overview: typeof english.overview = {
  title: 'Übersicht',
  noAppliances: 'Es gibt noch keine Geräte.',
  oneConnected: (appliance) => `${appliance} ist verbunden.`,
  allConnected: (count) => (count === 2 ? 'Beide Geräte sind verbunden.' : `Alle ${count} Geräte sind verbunden.`),
  needsLogin: (appliance) => `${appliance} braucht Ihre Hilfe: bitte neu anmelden.`,
  needsFirstLogin: (appliance) => `${appliance} ist noch nicht verbunden.`,
  needsApproval: (appliance) => `${appliance} wartet auf Ihre Freigabe.`,
  needsAttention: (appliance) => `${appliance} braucht Ihre Hilfe.`,
  severalNeedAttention: (count) => `${count} Geräte brauchen Ihre Hilfe.`,
  severalNotConnected: (count) => `${count} Geräte sind noch nicht verbunden.`,
  waitsForLogin: (appliance) => `${appliance} wartet auf die Anmeldung.`,
  severalWaitForLogin: (count) => `${count} Geräte warten auf die Anmeldung.`,
  waitsForPortal: (appliance) => `${appliance} wartet auf das Portal.`,
  severalWaitForPortal: (count) => `${count} Geräte warten auf das Portal.`,
  notRefreshed: (appliance) => `${appliance} konnte nicht erneuert werden; der Hub versucht es weiter.`,
  severalNotRefreshed: (count) => `${count} Geräte konnten nicht erneuert werden; der Hub versucht es weiter.`,
  hubNeedsAttention: 'Der Hub selbst braucht Ihre Hilfe.',
  hubWarning: 'Der Hub hat Ihnen etwas zu sagen.',
  hubConditions: 'Was zu tun ist',
  appliances: 'Geräte',
  addFirst: 'Fügen Sie das erste hinzu und verbinden Sie es dann.',
  add: 'Gerät hinzufügen',
  connectAll: 'Alle verbinden',
  connectAllHint: 'Meist genügt eine Anmeldung für alle.',
  connectByCode: 'Mit dem Code eines Geräts verbinden',
  scope: 'Berechtigungen',
  scopeByPortal: 'wie das Portal entscheidet',
  portal: 'Portal',
  account: 'Konto',
  lastRefresh: 'Zuletzt erneuert',
  nextRefresh: 'Nächste Erneuerung',
  registered: 'Möchte dazukommen seit',
  connect: 'Verbinden',
  connectAgain: 'Neu anmelden',
  showLink: 'Link zur Anmeldung zeigen',
  approve: 'Freigeben',
  reject: 'Ablehnen',
  registration: 'Geräte, die dazukommen möchten',
  registrationHint:
    'Manche Geräte können den Hub selbst fragen, ob sie dazukommen dürfen. Das für zehn Minuten erlauben; jedes wartet dann hier, bis Sie es freigeben.',
  registrationOpen: 'Neue Geräte dürfen dazukommen. Das endet',
  registrationOpenHint:
    'Jetzt die Einrichtung am Gerät starten. Es erscheint dann hier und wartet, bis Sie es freigeben.',
  severalRegistered: (count) =>
    `${count} Geräte wollten dazukommen, seit das erlaubt ist. Bitte die Codes vergleichen: ein Gerät nur freigeben, wenn es denselben Code zeigt wie diese Seite.`,
  openRegistration: 'Für 10 Minuten erlauben',
  closeRegistration: 'Jetzt beenden',
  about: 'Über diesen Hub',
  version: 'Version',
  address: 'Adresse',
  noAddress: 'keine',
  pin: 'Sicherheitscode',
};

export const health: typeof english.health = {
  kinds: {
    connected: 'Verbunden',
    held_up: 'Verbunden, aber nicht erneuert',
    interrupted: 'Unterbrochen',
    log_in_again: 'Neu anmelden',
    not_connected: 'Noch nicht verbunden',
    waiting_for_login: 'Wartet auf die Anmeldung',
    waiting_for_portal: 'Wartet auf das Portal',
    waiting_for_approval: 'Wartet auf Ihre Freigabe',
  },
  conditions: {
    portal_unreachable: () =>
      'Das Portal war nicht erreichbar. Bitte die Internetverbindung prüfen; der Hub versucht es weiter.',
    portal_deferred: () => 'Das Portal bittet um Geduld. Es ist nichts zu tun: Der Hub versucht es von selbst wieder.',
    portal_rejected: () =>
      'Das Portal hat den Hub abgewiesen. Der Hub versucht es weiter. Bleibt es dabei, bitte die Adresse des Portals in der Konfiguration und Firewalls auf dem Weg prüfen.',
    answer_lost: () => 'Eine Antwort des Portals ging unterwegs verloren. Der Hub versucht es von selbst wieder.',
    misconfigured: () => 'Das Portal nimmt client_id und Client-Geheimnis des Hubs nicht an.',
    clock_unknown: () => 'Der Hub kennt die richtige Zeit noch nicht. Sobald er sie kennt, geht es von selbst weiter.',
    store_unwritable: () =>
      'Der Hub kann nichts speichern. Bitte Platz auf dem Datenträger schaffen oder die Speicherkarte ersetzen.',
    refused: (appliance) => `Das Portal hat den Zugang beendet. Neu anmelden, um ${appliance} zu verbinden.`,
    credentials_untried: () =>
      'Das Portal hat client_id und Client-Geheimnis des Hubs bisher nicht angenommen. Noch ist nichts zu tun: Der Hub versucht es jetzt damit.',
    portal_changed: (appliance) =>
      `Die Konfiguration des Hubs nennt ein anderes Portal oder eine andere client_id als die, mit der ${appliance} verbunden wurde. War das nicht gewollt, bitte zurückändern und „sudo latchkey reload“ ausführen; sonst neu anmelden, um ${appliance} zu verbinden.`,
    grant_damaged: (appliance) =>
      `Der Zugang wurde auf dem Datenträger des Hubs beschädigt. Neu anmelden, um ${appliance} zu verbinden.`,
    approval_needed: (appliance) =>
      `${appliance} möchte dazukommen. Bitte nur freigeben, wenn es Ihr Gerät ist. Zeigt es einen Code, muss es der hier sein.`,
    not_paired: (appliance) => `Einmal anmelden, um ${appliance} zu verbinden.`,
    pairing_failed: (appliance) => `Die letzte Kopplung von ${appliance} ist gescheitert.`,
    login_open: (appliance) => `Jemand muss sich am Portal anmelden, um ${appliance} zu verbinden.`,
    portal_awaited: () =>
      'Es ist nichts zu tun: Der Hub fragt weiter, und der Link für die Anmeldung ist hier, sobald das Portal einen gibt.',
    without_credentials: () =>
      'Es hat kein Geheimnis mehr und bekommt deshalb keinen Zugang. Es wieder in die Konfiguration aufnehmen oder ihm ein neues Geheimnis geben.',
    credentials_damaged: () =>
      'Sein Eintrag wurde auf dem Datenträger des Hubs beschädigt oder von jemandem geändert. Bitte entfernen, wieder hinzufügen und neu anmelden.',
  },
  corrections: {
    apply: {
      reload: '„latchkey reload“ ausführen',
      service_restart: 'den Hub neu starten („sudo systemctl restart latchkey“)',
      new_start: 'den Hub beenden und wieder starten',
    },
    clientId: (portal) =>
      `Bitte portals.${portal}.client_id in der Konfiguration des Hubs berichtigen und „latchkey reload“ ausführen.`,
    credentials: (portal, secretFile, apply) =>
      `Bitte portals.${portal}.client_id in der Konfiguration des Hubs oder das Client-Geheimnis${secretFile === undefined ? '' : ` in ${secretFile}`} berichtigen und ${apply}.`,
  },
  lastPairing: 'Letzte Kopplung',
  newLoginOpen: 'Eine neue Anmeldung läuft; bis dahin bleibt alles, wie es ist.',
  comparisonCode: 'Code',
  registrantAddress: 'Seine Adresse',
  softwareId: 'Nennt sich',
  scopeChanged: 'Die Konfiguration verlangt inzwischen anderen Zugang. Neu anmelden, damit das gilt.',
  problemSince: 'Störung begann',
  tokenExpires: 'Zugang endet',
  hub: {
    hub_id_taken:
      'Ein anderer Hub in diesem Netz gibt sich für diesen aus. Wurde eine Speicherkarte kopiert, bitte einen der beiden ausschalten.',
    hub_name_claimed:
      'Ein anderes Gerät in diesem Netz benutzt den Namen des Hubs. Ihre Geräte sind sicher: sie erkennen den Hub nicht nur am Namen.',
    not_announced: 'Geräte finden diesen Hub vielleicht nicht von selbst im Netz. Bitte das Netz des Hubs prüfen.',
    store_changed:
      'Einträge im Speicher des Hubs wurden beschädigt oder von jemandem geändert. Bitte die Geräte durchsehen; die ohne Zugang müssen entfernt und wieder hinzugefügt werden.',
    store_recovered:
      'Der Speicher des Hubs war beschädigt und wurde repariert. Bitte die Geräte durchsehen und die Speicherkarte bald ersetzen.',
    store_unwritable:
      'Der Hub kann nichts speichern. Bitte Platz auf dem Datenträger schaffen oder die Speicherkarte ersetzen.',
    wrong_setup_codes:
      'Jemand hat auf dieser Seite falsche Einrichtungscodes eingegeben. Waren Sie das nicht, bitte das Gerät in Ihrem Netz suchen.',
  },
  warnings: {
    token_ending: (appliance) =>
      `${appliance} verliert bald den Zugang, weil dieser nicht erneuert werden konnte. Bitte bald danach sehen.`,
    refresh_failing: () => 'Der Zugang wurde seit einem Tag nicht erneuert.',
  },
};
