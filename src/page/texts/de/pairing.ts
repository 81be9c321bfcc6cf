import type * as english from '../en/pairing.ts';
import { result } from './login.ts';

export const pairing: typeof english.pairing = {
  title: (appliance) => `${appliance} verbinden`,
  loginTitle: (login) => `Anmeldung „${login}“ verbinden`,
  connecting: 'Wartet auf das Portal',
  connectingText: 'Der Hub fordert beim Portal einen Anmeldelink an. Er erscheint gleich hier.',
  portalUnreachable:
    'Das Portal ist gerade nicht erreichbar. Prüfen Sie die Internetverbindung im Haus; der Hub versucht es weiter.',
  waiting: 'Wartet auf die Anmeldung',
  logIn: 'Am Portal anmelden',
  logInAt: (portal) => `Bei „${portal}“ anmelden`,
  scan: {
    anywhere:
      'Oder scannen Sie diesen QR-Code mit einem anderen Handy und melden Sie sich dort an. Das Handy muss dafür nicht im Heimnetz sein.',
    home: 'Oder scannen Sie diesen QR-Code mit einem anderen Handy in diesem Heimnetz und melden Sie sich dort an.',
    machine:
      'Der QR-Code enthält denselben Link. Der Link funktioniert nur auf dem Rechner, auf dem der Hub läuft, nicht auf einem Handy.',
  },
  qr: 'QR-Code mit dem Anmeldelink',
  enterCode:
    'Geben Sie dort diesen Code ein. Das Portal öffnet sich in einem neuen Tab, damit Sie zum Code zurückkehren können.',
  compareCode: 'Vergleichen Sie diesen Code. Machen Sie am Portal nur weiter, wenn dort derselbe steht.',
  paste: {
    question: 'Der Browser zeigt nach der Anmeldung eine Warnung, einen Fehler oder eine leere Seite?',
    expected:
      'Nach der Anmeldung zeigt der Browser einen Fehler oder eine leere Seite. Das ist in Ordnung: Der Hub braucht die Adresse jener Seite. Das Portal öffnet sich in einem neuen Tab, damit Sie hierher zurückkommen können.',
    expectedApp: (scheme) =>
      `Diese Anmeldung endet bei einer App, und der Hub braucht deren Adresse, die mit „${scheme}“ beginnt. Melden Sie sich an einem Computer an. Lesen Sie vorher auf der nächsten Seite, welcher Browser diese Adresse zeigt. Das Portal öffnet sich in einem neuen Tab.`,
    open: 'Adresse einfügen',
    back: 'Zum Anmeldelink',
    title: 'Der Browser zeigt einen Fehler oder eine leere Seite',
    why: 'Die Anmeldung kann trotzdem geklappt haben. Was der Hub braucht, steht in der Adresse jener Seite.',
    picture: 'Die ganze Adresse oben im Browser mit dem Fehler kommt in das Feld auf dieser Seite.',
    steps: {
      open: 'Lassen Sie die Seite mit dem Fehler offen und tippen Sie oben im Browser auf die Adresse.',
      copy: 'Kopieren Sie die ganze Adresse. Sie ist lang.',
      paste: 'Kommen Sie hierher zurück, fügen Sie die Adresse in das Feld ein und tippen Sie auf „Verbinden“.',
    },
    httpsOnly:
      'Warnt der Browser nur, dass die Seite nicht sicher ist? Dann ist er so eingestellt, dass er nur sichere Seiten öffnet. Machen Sie dort trotzdem weiter: Dann öffnet sich die Seite des Hubs, und es ist nichts zu kopieren.',
    whyApp: (scheme) =>
      `Was der Hub braucht, steht in der Adresse, zu der das Portal den Browser nach der Anmeldung schickt. Sie beginnt mit „${scheme}“, und nicht jeder Browser zeigt sie:`,
    browsers: {
      safari: 'Safari auf einem Mac zeigt die Adresse oben im Fenster. Kopieren Sie sie ganz.',
      chrome: (scheme) =>
        `Chrome und Edge bleiben auf der Seite der Anmeldung. Drücken Sie dort vor der Anmeldung F12 und wählen Sie „Netzwerk“. Klicken Sie nach der Anmeldung dort mit der rechten Maustaste auf die letzte Zeile und wählen Sie „Kopieren“, „URL kopieren“. Das Kopierte beginnt mit „${scheme}“.`,
      firefox:
        'Auch Firefox bleibt auf der Seite der Anmeldung und zeigt die Adresse nicht. Nehmen Sie einen anderen Browser.',
      phone: 'Ein Handy mit der App des Herstellers öffnet stattdessen die App. Nehmen Sie einen Computer.',
    },
    address: 'Adresse nach der Anmeldung',
    secret: 'Erledigen Sie das gleich: Die Adresse gilt nur einmal und nur kurze Zeit. Zeigen Sie sie niemand anderem.',
    connect: 'Verbinden',
    problems: {
      malformed:
        'Das ist nicht die Adresse einer Seite nach der Anmeldung. Kopieren Sie die ganze Adresse, vom Anfang bis zum Ende.',
      unknown:
        'Der Hub kennt die Anmeldung zu dieser Adresse nicht, oder ihre Zeit ist abgelaufen. Gehen Sie zurück und melden Sie sich noch einmal an.',
      other_pairing:
        'Diese Adresse gehört zu einer anderen Anmeldung. Gehen Sie zurück und melden Sie sich mit dem Link an, der dort steht.',
      used: 'Diese Adresse wurde schon verwendet. Gehen Sie zurück und melden Sie sich noch einmal an.',
      foreign_issuer:
        'Diese Adresse kommt nicht vom Portal, deshalb hat der Hub sie nicht verwendet. Gehen Sie zurück und melden Sie sich noch einmal an.',
    },
  },
  updatesItself: 'Diese Seite aktualisiert sich automatisch.',
  linkExpires: 'Ablauf des Links:',
  newCode: 'Ein neuer Code erscheint hier',
  unconfirmed: (address) => `Jemand hat sich von der Adresse ${address} aus angemeldet. Waren Sie das?`,
  unconfirmedText:
    'Das Portal hat diese Anmeldung nicht bestätigt. Verwenden Sie sie nur, wenn Sie wissen, wer sich angemeldet hat: Das Gerät wird dann mit dem Konto dieser Person verbunden.',
  confirm: 'Ja, diese Anmeldung verwenden',
  exchanging: 'Jemand hat sich angemeldet',
  exchangingText: 'Der Hub holt den Zugang vom Portal. Das dauert ein paar Sekunden.',
  connectedText: 'Die Geräte holen sich ihren Zugang selbst. Die Übersicht zeigt, wann sie es getan haben.',
  superseded: 'Dieser Anmeldelink ist nicht mehr gültig',
  nextSteps: {
    refused: 'Wenn das ein Versehen war, fordern Sie einen neuen Link an und erlauben Sie diesmal den Zugang.',
    fresh: 'Fordern Sie einen neuen Link an und melden Sie sich noch einmal an.',
    newer: 'Es gilt nur der neueste Anmeldeversuch.',
    configuration: 'Korrigieren Sie das zuerst in der Konfiguration des Hubs. Fordern Sie dann einen neuen Link an.',
    portal:
      'Fordern Sie einen neuen Link an. Wenn das wieder passiert, prüfen Sie in der Konfiguration des Hubs die Adresse des Portals und die Berechtigungen („scope“).',
  },
  showNewer: 'Neueste Anmeldung anzeigen',
  newLink: 'Neuen Link anfordern',
  cancel: 'Abbrechen',
  notFound: 'Der Hub kennt diese Anmeldung nicht mehr',
  notFoundText: 'Tippen Sie in der Übersicht auf das Gerät und verbinden Sie es noch einmal.',
  label: {
    heading: (appliance) => `${appliance} neu verbinden?`,
    text: 'Diese Seite wurde nicht durch Scannen des Etiketts geöffnet. Machen Sie nur weiter, wenn Sie dieses Gerät jetzt verbinden möchten.',
    button: 'Weiter',
    caption: 'Zum Verbinden scannen',
    title: (appliance) => `Etikett für ${appliance}`,
    what: 'Kleben Sie das Etikett innen an die Schranktür. Wer es scannt und den Einrichtungscode kennt, kann dieses Gerät neu verbinden. Das Etikett enthält nichts Geheimes.',
    paper:
      'Gedruckt wird nur das Etikett, 60 mal 40 mm. Auf größerem Papier drucken Sie in Originalgröße (100 %) und schneiden das Etikett aus.',
    print: 'Drucken',
  },
};

export const batch: typeof english.batch = {
  title: 'Alle Geräte verbinden',
  progress: (done, all) => `${done} von ${all} Anmeldungen erledigt`,
  allConnected: (count) =>
    ['Die Anmeldung ist erledigt', 'Beide Anmeldungen sind erledigt'][count - 1] ??
    `Alle ${count} Anmeldungen sind erledigt`,
  someConnected: (done, all) => `${done} von ${all} Anmeldungen ${done === 1 ? 'ist' : 'sind'} erledigt`,
  noAppliances: 'Es gibt noch kein Gerät',
  noAppliancesText: 'Fügen Sie zuerst in der Übersicht eines hinzu.',
  connected: 'Verbunden',
  notConnected: 'Noch nicht verbunden',
  more: (count) => (count === 1 ? 'und ein weiteres' : `und ${count} weitere`),
  differentAccounts:
    'Die Geräte wurden mit verschiedenen Konten verbunden. Wenn das ein Versehen ist, tippen Sie auf das Gerät mit dem falschen Konto und melden Sie sich mit dem richtigen Konto neu an.',
  next: (appliance) => `Weiter mit ${appliance}`,
  stop: 'Hier aufhören',
  skip: (appliance) => `${appliance} überspringen`,
  retry: (appliance) => `${appliance} noch einmal versuchen`,
  retryOthers: 'Die übrigen noch einmal verbinden',
  continueWithOthers: 'Mit den übrigen weitermachen',
  openHubPage: 'Zur Seite des Hubs',
  unreachable: 'Das Portal ist nicht erreichbar',
  unreachableText: (appliance) =>
    `Der Hub bekommt gerade keinen Anmeldelink für ${appliance}. Prüfen Sie die Internetverbindung im Haus und versuchen Sie es noch einmal.`,
  ended: '„Alle verbinden“ ist beendet',
  endedText: 'Machen Sie auf der Seite des Hubs weiter oder führen Sie auf dem Hub „sudo latchkey pair --all“ aus.',
  reasons: {
    ...result.reasons,
    waiting_for_approval: 'Es wartet auf Ihre Freigabe.',
    not_begun: 'Noch nicht begonnen.',
  },
};
