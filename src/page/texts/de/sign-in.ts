import type * as english from '../en/sign-in.ts';

export const signIn: typeof english.signIn = {
  heading: 'Auf der Seite des Hubs anmelden',
  whereToFindCode:
    'Wer den Hub eingerichtet hat, hat sich den Code vielleicht notiert. Ein Handy, das noch angemeldet ist, zeigt ihn auf der Übersicht unter „Über diesen Hub“. Auf dem Hub selbst zeigt dieser Befehl den Code und einen Einmal-Link:',
  label: 'Einrichtungscode',
  labelScanned:
    'Dieses Etikett führt zur Seite des Hubs, der dieses Gerät verbindet. Um zu sehen, ob alles in Ordnung ist, oder um es neu zu verbinden, ist der Einrichtungscode nötig: Fragen Sie die Person, die den Hub eingerichtet hat.',
  hint: 'Sechzehn Buchstaben; Großschreibung und Bindestriche spielen keine Rolle.',
  button: 'Anmelden',
  missing: 'Geben Sie zuerst den Einrichtungscode ein.',
  wrong: 'Das ist nicht der Einrichtungscode dieses Hubs. Vergleichen Sie ihn Buchstabe für Buchstabe.',
  tooShort: (count) => `Das ist zu kurz: Der Einrichtungscode hat sechzehn Buchstaben, eingegeben haben Sie ${count}.`,
  tooLong: (count) => `Das ist zu lang: Der Einrichtungscode hat sechzehn Buchstaben, eingegeben haben Sie ${count}.`,
  locked:
    'Zu viele falsche Codes von dieser Adresse. Warten Sie zehn Sekunden und versuchen Sie es dann noch einmal. Bis dahin akzeptiert der Hub keinen Code, auch den richtigen nicht. Ein Einmal-Link von „sudo latchkey setup-code“ funktioniert trotzdem.',
  sessionEnded: 'Sie sind nicht mehr angemeldet. Melden Sie sich noch einmal an.',
  sessionEndedBeforeSubmit:
    'Sie sind nicht mehr angemeldet, deshalb wurde nichts geändert. Nach dem Anmelden öffnet sich wieder die Seite, von der Sie kamen.',
  signedOut: 'Sie sind abgemeldet.',
  linkUsed:
    'Dieser Einmal-Link gilt nicht mehr. Jeder gilt nur einmal, zehn Minuten lang und bis zum nächsten Neustart des Hubs. Geben Sie den Einrichtungscode ein oder holen Sie sich mit dem Befehl unten einen neuen Link.',
  redirecting: 'Einen Moment bitte',
  continueLink: 'Weiter',
  csrfFailure: {
    heading: 'Es wurde nichts geändert',
    text: 'Die Seite, die Sie benutzt haben, ist älter als Ihre letzte Anmeldung oder gehört zu einer fremden Website. Öffnen Sie die Seite neu und wiederholen Sie die Eingabe.',
    link: 'Seite öffnen',
  },
  malformedForm: {
    heading: 'Die Eingabe konnte nicht gelesen werden',
    text: 'Es wurde nichts geändert. Öffnen Sie die Seite neu und wiederholen Sie die Eingabe.',
  },
};

export const setupCode: typeof english.setupCode = {
  heading: 'Einrichtungscode',
  show: 'Einrichtungscode anzeigen',
  hint: 'Sie bleiben zwölf Stunden angemeldet. Mit dem Einrichtungscode melden Sie sich wieder an, auch auf einem anderen Handy.',
  writeDown: (page) =>
    `Schreiben Sie diesen Code auf und bewahren Sie ihn sicher auf. Mit ihm melden Sie sich wieder an, wenn Sie abgemeldet sind, oder auf einem anderen Handy: Öffnen Sie dort ${page}. Wer den Code kennt, kann auf dieser Seite alles tun.`,
  replace:
    'Wenn ein Fremder den Code kennen könnte, erstellen Sie einen neuen. Dieser Befehl auf dem Hub tut das und meldet alle ab:',
};

export const browsers: typeof english.browsers = {
  heading: 'Angemeldete Browser',
  intro:
    'Melden Sie jeden Browser ab, den Sie nicht kennen. Wer den Einrichtungscode kennt, kann sich wieder anmelden. Wenn ein Fremder ihn kennen könnte, erstellen Sie einen neuen Code: Dieser Befehl auf dem Hub tut das und meldet alle ab:',
  unknown: 'Unbekannter Browser',
  thisBrowser: 'Dieser Browser',
  since: 'Angemeldet',
  lastSeen: 'Zuletzt gesehen',
  notSeenSinceStart: 'vor dem letzten Start des Hubs',
  address: 'Adresse bei der Anmeldung',
  signOut: 'Abmelden',
  signOutOthers: 'Alle anderen abmelden',
};
