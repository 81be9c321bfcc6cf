import type * as english from '../en/appliance.ts';

export const appliance: typeof english.appliance = {
  state: 'Zustand',
  refreshNow: 'Jetzt erneuern',
  clientId: 'Client-ID',
  commandName: 'Name in Befehlen',
  manage: 'Ändern',
  more: 'Mehr',
  newSecret: 'Neues Passwort für das Gerät',
  rename: 'Umbenennen',
  saveName: 'Namen speichern',
  renameMeaning:
    'Das Gerät heißt dann hier, in Meldungen und auf neuen Etiketten so. Client-ID, Passwort, Anmeldung und der Name in Befehlen bleiben gleich, und gedruckte Etiketten gelten weiter.',
  doorLabel: 'Etikett für die Schranktür',
  disconnect: 'Trennen',
  remove: 'Entfernen',
  disconnectMeaning: 'Kein Zugang mehr, bis sich jemand neu anmeldet. Das Gerät bleibt auf dem Hub.',
  removeMeaning: 'Löscht das Gerät, sein Passwort und seine Anmeldung auf dem Hub.',
  removeFromLoginMeaning: 'Löscht das Gerät und sein Passwort auf dem Hub. Die Anmeldung bleibt.',
  declared:
    'Dieses Gerät ist in der Konfigurationsdatei des Hubs eingetragen. Um das Passwort zu ändern oder das Gerät zu entfernen, bearbeiten Sie diese Datei.',
  rotateHeading: (name) => `Neues Passwort für ${name} erstellen?`,
  rotateText:
    'Das alte Passwort gilt dann sofort nicht mehr. Tragen Sie das neue am Gerät ein. Das Gerät bleibt mit dem Portal verbunden.',
  rotateKeys:
    'Dieses Gerät verwendet statt eines Passworts eigene Schlüssel. Ein neues Passwort würde die Schlüssel ersetzen, und sie würden nicht mehr gelten.',
  rotateKeysLabel: 'Schlüssel ersetzen',
  rotateKeysMissing: 'Kreuzen Sie dies an, um die Schlüssel durch ein Passwort zu ersetzen.',
  disconnectHeading: (name) => `${name} vom Portal trennen?`,
  disconnectText:
    'Der Hub löscht die gespeicherte Anmeldung und gibt dem Gerät keinen Zugang zum Portal mehr. Um das Gerät wieder zu verbinden, muss sich jemand neu am Portal anmelden. Manche Portale erfahren davon nichts: Entfernen Sie den Zugang sicherheitshalber auch dort in Ihrem Konto.',
  removeHeading: (name) => `${name} entfernen?`,
  removeText: 'Der Hub löscht das Gerät, sein Passwort und seine Anmeldung. Das lässt sich nicht rückgängig machen.',
  rejectHeading: (name) => `Anfrage von ${name} ablehnen?`,
  rejectText: 'Der Hub löscht diese Anfrage. Solange neue Geräte zugelassen sind, kann das Gerät erneut anfragen.',
  notFound: 'Gerät nicht gefunden',
  notFoundText: 'Der Hub kennt dieses Gerät nicht. Vielleicht hat jemand es entfernt.',
  backToOverview: 'Zur Übersicht',
  backToAppliance: 'Zum Gerät',
  failures: {
    appliance_declared:
      'Dieses Gerät ist in der Konfigurationsdatei des Hubs eingetragen und lässt sich nur dort ändern.',
    not_allowed:
      'Das ist im Moment nicht möglich. Vielleicht hat es schon jemand anders erledigt, oder das Gerät ist noch nicht freigegeben. Gehen Sie zurück, um den aktuellen Stand zu sehen.',
    store_unwritable:
      'Es wurde nichts geändert, weil der Hub nichts speichern kann. Schaffen Sie Platz auf seinem Datenträger oder tauschen Sie die SD-Karte aus; wenn sich mehrere Hubs eine Datenbank teilen, prüfen Sie diese. Versuchen Sie es dann noch einmal.',
    hub_stopping: 'Der Hub startet gerade neu. Versuchen Sie es gleich noch einmal.',
    other: 'Das hat nicht funktioniert. Der Grund steht im Protokoll des Hubs („sudo journalctl -u latchkey“).',
  },
  nothingChanged: 'Es wurde nichts geändert',
};

export const adding: typeof english.adding = {
  title: 'Gerät hinzufügen',
  name: 'Name',
  nameHint: 'Wie es am Schrank steht, zum Beispiel „Wärmepumpe Keller“; höchstens 64 Zeichen.',
  scope: 'Berechtigungen',
  scopeHint:
    'Welche Berechtigungen das Gerät am Portal braucht (in vielen Anleitungen „Scope“), zum Beispiel „Monitoring RemoteControl“. Das Feld darf leer bleiben.',
  portal: 'Portal',
  choosePortal: 'Bitte wählen',
  portalMissing: 'Wählen Sie das Portal dieses Geräts.',
  add: 'Hinzufügen',
  nameMissing: 'Geben Sie einen Namen ein.',
  nameInvalid:
    'Dieser Name ist nicht möglich. Erlaubt sind höchstens 64 Buchstaben, Ziffern, Leerzeichen und Satzzeichen.',
  nameTaken: 'Ein Gerät mit diesem oder fast demselben Namen gibt es schon. Wählen Sie einen anderen Namen.',
  scopeInvalid:
    'Die Eingabe ist zu lang oder enthält ein unzulässiges Zeichen. Geben Sie die Berechtigungen durch Leerzeichen getrennt ein, ohne Anführungszeichen und Umlaute.',
  portalUnknown: 'Dieses Portal hat der Hub nicht. Wählen Sie ein anderes.',
  credentials: {
    title: (appliance) => `Zugangsdaten von ${appliance}`,
    added: (appliance) => `${appliance} wurde hinzugefügt.`,
    rotated: (appliance) => `${appliance} hat ein neues Passwort. Das alte gilt nicht mehr.`,
    keep: 'Tragen Sie diese Angaben jetzt am Gerät ein. Das Passwort wird nur auf dieser Seite angezeigt. Die Seite lässt sich zehn Minuten lang neu laden, oder bis Sie auf „Fertig“ tippen. Danach kann niemand das Passwort mehr sehen.',
    clientId: 'Client-ID',
    clientSecret: 'Passwort (Client-Secret)',
    tokenEndpoint: 'Adresse, an der das Gerät seinen Zugang abholt (Token-URL)',
    addressHint: 'Stellen Sie im Router ein, dass der Hub diese Adresse behält.',
    pin: 'Sicherheitscode des Hubs, an dem das Gerät den Hub erkennt; er ist nicht geheim',
    qr: 'Alle Angaben als QR-Code',
    qrHint:
      'Für Geräte mit Kamera oder für die App, mit der das Gerät eingerichtet wird. Der QR-Code enthält das Passwort: Zeigen Sie ihn sonst niemandem.',
    connectNext: (appliance) => `${appliance} jetzt verbinden`,
    addAnother: 'Weiteres Gerät hinzufügen',
    done: 'Fertig',
    gone: 'Diese Zugangsdaten werden nicht mehr angezeigt',
    goneText:
      'Zugangsdaten werden zehn Minuten lang angezeigt, oder bis Sie auf „Fertig“ tippen oder sich abmelden. Sind die Angaben verloren, tippen Sie in der Übersicht auf das Gerät, dann auf „Mehr“ und auf „Neues Passwort für das Gerät“.',
  },
};

export const history: typeof english.history = {
  heading: 'Verlauf',
  empty: 'Noch keine Einträge.',
  olderEntries: 'Ältere Einträge',
  days: 'Die letzten 14 Tage',
  connected: 'Verbunden',
  failing: 'Zeitweise gestört',
  needsPairing: 'Anmeldung am Portal nötig',
  unknown: 'Nicht verbunden oder nichts bekannt',
  summary: (connected, failing, needsPairing) =>
    `Die letzten 14 Tage. Tage verbunden: ${connected}, Tage zeitweise gestört: ${failing}, Tage mit nötiger Anmeldung am Portal: ${needsPairing}.`,
  kinds: {
    paired: 'Nach einer Anmeldung verbunden',
    pairing_failed: 'Anmeldung fehlgeschlagen',
    unpaired: 'Getrennt',
    refreshed: 'Zugang erneuert',
    refresh_failed: 'Zugang konnte nicht erneuert werden',
    token_refused: 'Das Gerät meldet, dass das Portal seinen Zugang abgelehnt hat',
  },
  loginEnded: 'Anmeldeversuch beendet',
  by: (user) => `durch ${user}`,
  repeatCount: (count) => (count === 1 ? '' : `${count}-mal`),
  failureReasons: {
    portal_unreachable: 'Das Portal war nicht erreichbar.',
    portal_deferred: 'Das Portal hat eine Wartezeit verlangt.',
    portal_rejected: 'Das Portal hat die Anfrage des Hubs abgelehnt.',
    clock_unknown: 'Der Hub kannte die richtige Uhrzeit nicht.',
    store_unwritable: 'Der Hub konnte nichts speichern.',
    database_unavailable: 'Der Hub konnte seine Datenbank nicht erreichen.',
    refused: 'Das Portal hat den Zugang beendet.',
  },
};
