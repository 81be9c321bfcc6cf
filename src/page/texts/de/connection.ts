import type * as english from '../en/connection.ts';

export const connection: typeof english.connection = {
  quoted: (name) => `die Anmeldung „${name}“`,
  title: (name) => `Anmeldung „${name}“`,
  about: (name) => `Es geht um die Anmeldung „${name}“.`,
  others: (count) => (count === 1 ? 'ein weiteres' : `${count} weitere`),
  usedBy: 'Genutzt von',
  unused: 'Noch nutzt kein Gerät diese Anmeldung.',
  addAppliance: 'Gerät zu dieser Anmeldung hinzufügen',
  declared:
    'Diese Anmeldung ist in der Konfigurationsdatei des Hubs eingetragen. Um sie zu ändern oder zu entfernen, bearbeiten Sie diese Datei.',
  renameMeaning:
    'Die Anmeldung heißt dann hier und in Meldungen so. Sonst ändert sich nichts: Niemand muss sich neu anmelden, und die Passwörter ihrer Geräte bleiben gültig.',
  disconnectMeaning: 'Kein Zugang mehr für ihre Geräte, bis sich jemand neu anmeldet.',
  removeMeaning: 'Löscht die Anmeldung. Jedes ihrer Geräte braucht dann eine eigene.',
  removeUnusedMeaning: 'Löscht die Anmeldung auf dem Hub.',
  disconnectHeading: (name) => `Anmeldung „${name}“ vom Portal trennen?`,
  disconnectText: (appliances) =>
    `Der Hub löscht die gespeicherte Anmeldung und gibt diesen Geräten keinen Zugang zum Portal mehr: ${appliances}. Um sie wieder zu verbinden, muss sich jemand neu am Portal anmelden. Manche Portale erfahren davon nichts: Entfernen Sie den Zugang sicherheitshalber auch dort in Ihrem Konto.`,
  disconnectUnused:
    'Der Hub löscht die gespeicherte Anmeldung. Um sie wieder zu verbinden, muss sich jemand neu am Portal anmelden. Manche Portale erfahren davon nichts: Entfernen Sie den Zugang sicherheitshalber auch dort in Ihrem Konto.',
  removeHeading: (name) => `Anmeldung „${name}“ entfernen?`,
  removeUnused: 'Der Hub löscht die Anmeldung. Das lässt sich nicht rückgängig machen.',
  removeUsed: (appliances) =>
    `Der Hub löscht die Anmeldung. Jedes dieser Geräte braucht dann eine eigene Anmeldung: ${appliances}. Ihre Passwörter bleiben gültig.`,
  notFound: 'Anmeldung nicht gefunden',
  notFoundText: 'Der Hub kennt diese Anmeldung nicht. Vielleicht hat jemand sie entfernt.',
  backTo: 'Zur Anmeldung',
  failures: {
    connection_declared:
      'Diese Anmeldung ist in der Konfigurationsdatei des Hubs eingetragen und lässt sich nur dort entfernen.',
    connection_exists:
      'Eines der Geräte kann keine eigene Anmeldung bekommen, weil eine andere Anmeldung schon so heißt wie das Gerät. Wählen Sie für dieses Gerät zuerst eine andere Anmeldung.',
    token_unavailable:
      'Diese Anmeldung ist nicht verbunden, deshalb gibt es keinen Zugang, der erneuert werden kann. Melden Sie sich zuerst am Portal an.',
  },
};

export const addConnection: typeof english.addConnection = {
  title: 'Gemeinsame Anmeldung hinzufügen',
  text: 'Eine Anmeldung am Portal für mehrere Geräte. Fügen Sie sie hier hinzu, lassen Sie die Geräte sie nutzen und melden Sie sich einmal an.',
  nameHint: 'Zum Beispiel „Netatmo“ oder „Solar Dach“; höchstens 64 Zeichen.',
  scopeHint:
    'Welche Berechtigungen ihre Geräte am Portal brauchen (in vielen Anleitungen „Scope“). Alle bekommen dieselben. Das Feld darf leer bleiben.',
};

export const connectionChoice: typeof english.connectionChoice = {
  label: 'Anmeldung',
  several: 'Anmeldungen',
  addresses: 'Eine Adresse für jede Anmeldung',
  addressesText:
    'Geben Sie die Adresse, an der das Programm seinen Zugang abholt (Token-URL), für jede Anmeldung einmal ein, mit diesem Ende statt „/oauth/token“.',
  own: 'Eigene Anmeldung',
  option: (name, appliances) => `${name} (genutzt von ${appliances})`,
  ownOf: (appliance) => `${appliance} (eigene Anmeldung)`,
  hint: 'Wählen Sie eine vorhandene Anmeldung, wenn das Gerät sie mitnutzen soll. Es hat dann die Berechtigungen dieser Anmeldung.',
  notOffered: (logins) => `Nicht zur Wahl, weil sie andere Berechtigungen haben: ${logins}.`,
  gone: 'Diese Anmeldung gibt es nicht mehr. Wählen Sie eine andere.',
  nameIsLogin:
    'Eine Anmeldung mit diesem Namen gibt es schon. Die eigene Anmeldung eines Geräts heißt wie das Gerät. Wählen Sie einen anderen Namen oder nutzen Sie diese Anmeldung.',
  connected: (name) => `Es nutzt die Anmeldung „${name}“. Sie ist verbunden: Niemand muss sich anmelden.`,
  removeText: (name) =>
    `Der Hub löscht das Gerät und sein Passwort. Die Anmeldung „${name}“ bleibt. Das lässt sich nicht rückgängig machen.`,
  move: 'Andere Anmeldungen nutzen',
  moveHeading: (appliance) => `Welche Anmeldungen soll ${appliance} nutzen?`,
  moveText:
    'Die meisten Geräte nutzen eine Anmeldung. Ein Programm wie eine Hausautomation kann mehrere nutzen und sagt bei jeder Anfrage, welche es meint. Sein Passwort bleibt gültig.',
  unusedKept:
    'Eine Anmeldung, die kein Gerät mehr nutzt, bleibt auf dem Hub. Die Übersicht zeigt sie dann, und auf ihrer Seite können Sie sie entfernen.',
  ownRemoved: 'Ohne Häkchen entfernt der Hub seine eigene Anmeldung, weil sie nicht verbunden ist.',
  moveButton: 'Diese Anmeldungen nutzen',
  otherPermissions:
    'Für andere Berechtigungen fügen Sie eine Anmeldung hinzu, die sie hat, und lassen Sie die Geräte diese nutzen: auf der Seite eines Geräts „Mehr“, dann „Andere Anmeldungen nutzen“. Passwörter bleiben gültig.',
  otherPermissionsHere:
    'Für andere Berechtigungen fügen Sie zuerst eine Anmeldung hinzu, die sie hat. Danach steht hier „Andere Anmeldungen nutzen“. Das Passwort bleibt gültig.',
  none: 'Es wurde keine Anmeldung gewählt. Wählen Sie mindestens eine.',
  mismatch: (appliance, wanted, login, offered) =>
    `${appliance} bittet um diese Berechtigungen: ${wanted}. Die Anmeldung „${login}“ gibt andere: ${offered}. Wählen Sie eine Anmeldung mit denselben Berechtigungen oder „Eigene Anmeldung“.`,
  noPermissions: 'keine',
};
