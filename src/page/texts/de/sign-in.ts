import type * as english from '../en/sign-in.ts';

export const signIn: typeof english.signIn = {
  heading: 'Anmelden',
  whereToFindCode:
    'Wer den Hub eingerichtet hat, hat den Code vielleicht notiert. Am Hub selbst zeigt ihn dieser Befehl, und dazu eine Einmal-Adresse:',
  label: 'Einrichtungscode',
  hint: 'Zwölf Buchstaben; groß oder klein, mit oder ohne Striche.',
  button: 'Anmelden',
  missing: 'Geben Sie zuerst den Einrichtungscode ein.',
  wrong: 'Das ist nicht der Einrichtungscode dieses Hubs. Vergleichen Sie ihn Buchstabe für Buchstabe.',
  locked: (time) =>
    `Zu viele falsche Codes. Der Hub sieht noch ${time} lang keinen Code an, auch den richtigen nicht; versuchen Sie es danach wieder. Eine Einmal-Adresse, die „latchkey setup-code“ zeigt, gilt auch jetzt.`,
  sessionEnded: 'Sie sind nicht mehr angemeldet. Melden Sie sich noch einmal an.',
  sessionEndedBeforeSubmit:
    'Sie sind nicht mehr angemeldet, deshalb wurde nichts geändert. Melden Sie sich an, dann sind Sie wieder auf der Seite, von der Sie kamen.',
  signedOut: 'Sie sind abgemeldet.',
  linkUsed:
    'Diese Anmelde-Adresse wurde schon benutzt oder ist abgelaufen: jede gilt einmal, zehn Minuten lang. Geben Sie den Einrichtungscode ein, oder lassen Sie sich vom Hub eine neue Adresse geben.',
  redirecting: 'Einen Moment',
  continueLink: 'Weiter',
  csrfFailure: {
    heading: 'Es wurde nichts geändert',
    text: 'Dieses Formular kam von einer fremden Seite oder aus der Zeit vor Ihrer letzten Anmeldung. Öffnen Sie die Seite neu und senden Sie es noch einmal.',
    link: 'Seite öffnen',
  },
  malformedForm: {
    heading: 'Dieses Formular ist nicht lesbar',
    text: 'Es wurde nichts geändert. Öffnen Sie die Seite neu und senden Sie es noch einmal.',
  },
  seconds: (count) => (count === 1 ? 'eine Sekunde' : `${count} Sekunden`),
  minutes: (count) => (count === 1 ? 'eine Minute' : `${count} Minuten`),
};

export const signedInBrowsers: typeof english.signedInBrowsers = {
  link: 'Angemeldete Browser',
  heading: 'Angemeldete Browser',
  intro:
    'Melden Sie ab, was Sie nicht kennen. Wer den Einrichtungscode kennt, kann sich wieder anmelden: kennt ihn vielleicht jemand anderes, lassen Sie einen neuen machen. Dieser Befehl am Hub tut das und meldet alle ab:',
  unknown: 'Unbekannter Browser',
  thisBrowser: 'Dieser Browser',
  since: 'Angemeldet',
  lastSeen: 'Zuletzt gesehen',
  notSeenSinceStart: 'vor dem letzten Start des Hubs',
  address: 'Adresse beim Anmelden',
  signOut: 'Abmelden',
  signOutOthers: 'Alle anderen abmelden',
};
