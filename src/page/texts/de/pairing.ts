import type * as english from '../en/pairing.ts';
import { loginResult } from './login.ts';

export const pairing: typeof english.pairing = {
  title: (appliance) => `${appliance} verbinden`,
  connecting: 'Wartet auf das Portal',
  connectingText: 'Der Hub fragt das Portal nach einem Link. Er ist gleich da.',
  portalUnreachable:
    'Das Portal ist gerade nicht erreichbar. Bitte die Internetverbindung prüfen; der Hub versucht es von selbst weiter.',
  waiting: 'Wartet auf die Anmeldung',
  logIn: 'Beim Portal anmelden',
  scan: {
    anywhere:
      'Oder mit einem anderen Telefon scannen und sich dort anmelden. Es darf überall sein, auch außerhalb dieses Hauses.',
    home: 'Oder mit einem anderen Telefon in diesem Heimnetz scannen und sich dort anmelden.',
    machine: 'Der QR-Code ist derselbe Link. Er funktioniert nur auf dem Rechner, auf dem der Hub läuft.',
  },
  qr: 'QR-Code des Links zur Anmeldung',
  updatesItself: 'Diese Seite zeigt von selbst, wie es weitergeht.',
  linkExpires: 'Der Link verfällt',
  unconfirmed: (address) => `Jemand an ${address} hat sich angemeldet. Waren Sie das?`,
  unconfirmedText:
    'Das Portal hat diese Anmeldung nicht bestätigt. Sagen Sie nur ja, wenn Sie wissen, wessen sie ist: Das Gerät wird mit dem Konto dieser Person verbunden.',
  confirm: 'Ja, diese Anmeldung verwenden',
  exchanging: 'Jemand hat sich angemeldet',
  exchangingText: 'Der Hub holt den Zugang beim Portal. Das dauert ein paar Sekunden.',
  connected: (appliance) => `${appliance} ist verbunden`,
  connectedText: 'Um alles Weitere kümmert sich der Hub. Es ist nichts mehr zu tun.',
  superseded: 'Diese Kopplung ist beendet',
  failed: (appliance) => `${appliance} ist nicht verbunden`,
  nextSteps: {
    refused: 'War das ein Versehen, dann nehmen Sie einen neuen Link und erlauben diesmal den Zugang.',
    fresh: 'Nehmen Sie einen neuen Link und melden Sie sich noch einmal an.',
    newer: 'Es gilt eine andere Kopplung dieses Geräts.',
    configuration: 'Berichtigen Sie das zuerst in der Konfiguration des Hubs, und nehmen Sie dann einen neuen Link.',
    portal:
      'Nehmen Sie einen neuen Link. Geschieht das wieder, dann prüfen Sie in der Konfiguration des Hubs die Adresse des Portals und den Scope.',
  },
  showNewer: 'Die neuere zeigen',
  newLink: 'Neuen Link nehmen',
  cancel: 'Abbrechen',
  toOverview: 'Zur Übersicht',
  notFound: 'Diese Kopplung kennt der Hub nicht mehr',
  notFoundText: 'Beginnen Sie auf der Seite des Geräts eine neue.',
  notPossible: 'Das geht gerade nicht',
  tooMany:
    'Es sind zu viele Kopplungen offen, oder das Gerät ist noch nicht freigegeben. Klären Sie das zuerst und versuchen Sie es dann wieder.',
  storeUnwritable:
    'Der Hub kann nichts speichern. Schaffen Sie Platz auf dem Datenträger oder ersetzen Sie die Speicherkarte, und versuchen Sie es dann wieder.',
  label: {
    heading: (appliance) => `${appliance} neu verbinden?`,
    text: 'Sie kommen nicht vom Code auf dem Etikett selbst. Fahren Sie nur fort, wenn Sie dieses Gerät jetzt verbinden möchten.',
    button: 'Weiter',
    caption: 'Zum Verbinden scannen',
    title: (appliance) => `Etikett für ${appliance}`,
    what: 'Kleben Sie es innen an die Tür des Schranks. Wer es scannt und den Einrichtungscode kennt, verbindet dieses Gerät neu. Es steht kein Geheimnis darauf.',
    paper:
      'Gedruckt wird nur das Etikett, 60 mal 40 mm. Bei größerem Papier in Originalgröße (100 %) drucken und ausschneiden.',
    print: 'Drucken',
  },
};

export const pairingBatch: typeof english.pairingBatch = {
  title: 'Alle Geräte verbinden',
  progress: (connected, all) => `${connected} von ${all} verbunden`,
  allConnected: (count) =>
    ['Ihr Gerät ist verbunden', 'Beide Geräte sind verbunden'][count - 1] ?? `Alle ${count} Geräte sind verbunden`,
  someConnected: (connected, all) => `${connected} von ${all} Geräten ${connected === 1 ? 'ist' : 'sind'} verbunden`,
  noAppliances: 'Es gibt noch kein Gerät',
  noAppliancesText: 'Fügen Sie zuerst auf der Übersicht eines hinzu.',
  connected: 'Verbunden',
  notConnected: 'Noch nicht verbunden',
  more: (count) => (count === 1 ? 'und noch eines' : `und ${count} weitere`),
  differentAccounts:
    'Die Geräte wurden mit verschiedenen Konten verbunden. War das nicht gewollt, öffnen Sie das falsche und melden Sie sich dort noch einmal an.',
  next: (appliance) => `Weiter mit ${appliance}`,
  stop: 'Hier aufhören',
  skip: (appliance) => `${appliance} auslassen`,
  retry: (appliance) => `${appliance} noch einmal versuchen`,
  retryOthers: 'Die übrigen noch einmal verbinden',
  continueWithOthers: 'Mit den übrigen fortfahren',
  mayClosePage: 'Das war das letzte. Sie können diese Seite schließen.',
  openHubPage: 'Zur Seite des Hubs',
  unreachable: 'Das Portal ist nicht erreichbar',
  unreachableText: (appliance) =>
    `Der Hub bekommt gerade keinen Link für ${appliance}. Prüfen Sie, ob das Haus online ist, und versuchen Sie es noch einmal.`,
  ended: 'Dieser Durchgang ist beendet',
  endedText: 'Fahren Sie auf der Seite des Hubs fort, oder mit „latchkey pair --all“.',
  reasons: {
    ...loginResult.reasons,
    waiting_for_approval: 'Es wartet auf Ihre Freigabe.',
    not_begun: 'Es war noch nicht an der Reihe.',
  },
};
