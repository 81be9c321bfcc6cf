import type * as english from '../en/appliance.ts';

export const appliance: typeof english.appliance = {
  state: 'Zustand',
  refreshNow: 'Jetzt erneuern',
  clientId: 'Client-ID',
  manage: 'Ändern',
  newSecret: 'Neues Geheimnis',
  doorLabel: 'Etikett für die Schranktür',
  disconnect: 'Trennen',
  remove: 'Entfernen',
  declared:
    'Dieses Gerät steht in der Konfigurationsdatei des Hubs: Sein Geheimnis und ob es da ist, wird in dieser Datei geändert.',
  rotateHeading: (name) => `${name} ein neues Geheimnis geben?`,
  rotateText:
    'Das alte Geheimnis gilt ab sofort nicht mehr. Das neue ist am Gerät einzutragen. Mit dem Portal bleibt es verbunden.',
  rotateKeys:
    'Es weist sich mit eigenen Schlüsseln aus. Ein Geheimnis würde sie ersetzen, und sie würden nicht mehr gelten.',
  rotateKeysLabel: 'Seine Schlüssel ersetzen',
  rotateKeysMissing: 'Hier ankreuzen, wenn seine Schlüssel ersetzt werden sollen.',
  disconnectHeading: (name) => `${name} trennen?`,
  disconnectText:
    'Der Hub vergisst die Anmeldung und gibt dem Gerät keinen Zugang mehr. Um es wieder zu verbinden, muss sich jemand neu anmelden.',
  removeHeading: (name) => `${name} entfernen?`,
  removeText: 'Der Hub vergisst das Gerät, sein Geheimnis und seine Anmeldung. Das lässt sich nicht zurücknehmen.',
  rejectHeading: (name) => `${name} ablehnen?`,
  rejectText:
    'Der Hub vergisst, dass es dazukommen wollte. Solange neue Geräte dazukommen dürfen, kann es wieder fragen.',
  notFound: 'Dieses Gerät gibt es nicht',
  notFoundText: (name) => `Der Hub kennt ${name} nicht. Vielleicht wurde es inzwischen entfernt.`,
  backToOverview: 'Zur Übersicht',
  backToAppliance: (name) => `Zu ${name}`,
  failures: {
    appliance_declared: 'Dieses Gerät steht in der Konfigurationsdatei des Hubs; es wird dort geändert und nicht hier.',
    not_allowed: 'So, wie es gerade steht, geht das nicht. Vielleicht hat es jemand anderes schon getan.',
    store_unwritable:
      'Der Hub konnte es nicht speichern: Sein Datenträger ist voll oder beschädigt. Es wurde nichts geändert.',
    token_unavailable: 'Es ist nicht verbunden, also gibt es nichts zu erneuern. Bitte zuerst anmelden.',
    hub_stopping: 'Der Hub wird gerade neu gestartet. Bitte gleich noch einmal versuchen.',
    other: 'Der Hub konnte es nicht tun. Sein Protokoll sagt mehr.',
  },
  nothingChanged: 'Es wurde nichts geändert',
};

export const addAppliance: typeof english.addAppliance = {
  title: 'Gerät hinzufügen',
  name: 'Name',
  nameHint: 'Kleinbuchstaben a–z, Ziffern und „-“, etwa „wallbox“ oder „waermepumpe-2“; höchstens 63.',
  scope: 'Berechtigungen',
  scopeHint:
    'Was es beim Portal anfragen soll (in vielen Handbüchern „Scope“), etwa „Monitoring RemoteControl“. Darf leer bleiben.',
  portal: 'Portal',
  add: 'Hinzufügen',
  nameMissing: 'Bitte einen Namen eingeben.',
  nameInvalid:
    'Das kann kein Name sein. Erlaubt sind Kleinbuchstaben a–z, Ziffern und „-“, am Anfang ein Buchstabe oder eine Ziffer; höchstens 63.',
  nameTaken: 'Ein Gerät mit diesem Namen gibt es schon. Bitte einen anderen wählen.',
  scopeInvalid:
    'Hier steht ein Zeichen, das nicht vorkommen kann, oder es ist zu lang. Bitte Namen mit Leerzeichen dazwischen eingeben, ohne Anführungszeichen und Umlaute.',
  portalUnknown: 'Dieses Portal gibt es in der Konfiguration des Hubs nicht.',
  credentials: {
    title: (appliance) => `Zugangsdaten von ${appliance}`,
    added: (appliance) => `${appliance} ist hinzugefügt.`,
    rotated: (appliance) => `${appliance} hat ein neues Geheimnis. Das alte gilt nicht mehr.`,
    keep: 'Diese Angaben jetzt am Gerät eintragen. Das Geheimnis wird nur dieses eine Mal gezeigt: Der Hub behält keine Kopie. Die Seite lässt sich zehn Minuten lang neu laden, außer nach „Fertig“.',
    clientId: 'Client-ID',
    clientSecret: 'Client-Geheimnis',
    tokenEndpoint: 'Adresse für Tokens',
    pin: 'Sicherheitscode des Hubs',
    qr: 'Alles zusammen als QR-Code',
    qrHint:
      'Für Geräte mit Kamera oder eine App, die sie einrichtet. Er enthält das Geheimnis: bitte sonst niemandem zeigen.',
    connectNext: (appliance) => `${appliance} jetzt verbinden`,
    done: 'Fertig',
    gone: 'Diese Zugangsdaten werden nicht mehr gezeigt',
    goneText:
      'Sie sind zehn Minuten lang zu sehen, und nicht mehr nach „Fertig“ oder dem Abmelden. Sind sie verloren, auf der Seite des Geräts ein neues Geheimnis geben.',
  },
};

export const history: typeof english.history = {
  heading: 'Verlauf',
  empty: 'Bisher ist nichts geschehen.',
  olderEntries: 'Ältere Einträge',
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
  repeatCount: (count) => (count === 1 ? '' : `${count}-mal`),
  failureReasons: {
    portal_unreachable: 'Das Portal war nicht erreichbar.',
    portal_deferred: 'Das Portal bat um Geduld.',
    portal_rejected: 'Das Portal hat den Hub abgewiesen.',
    clock_unknown: 'Der Hub kannte die Zeit nicht.',
    store_unwritable: 'Der Hub konnte es nicht speichern.',
    refused: 'Das Portal hat den Zugang beendet.',
  },
};
