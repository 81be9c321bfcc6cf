import type { signIn as english } from '../en/sign-in.ts';

export const signIn: typeof english = {
  heading: 'Anmelden',
  where:
    'Geben Sie den Einrichtungscode dieses Hubs ein. Wer den Hub eingerichtet hat, hat ihn vielleicht notiert; am Hub selbst zeigt ihn dieser Befehl:',
  label: 'Einrichtungscode',
  hint: 'Zwölf Buchstaben, zum Beispiel BCDF-GHJK-LMNP. Groß oder klein und die Striche sind gleich.',
  button: 'Anmelden',
  missing: 'Geben Sie zuerst den Einrichtungscode ein.',
  wrong: 'Das ist nicht der Einrichtungscode dieses Hubs. Vergleichen Sie ihn Buchstabe für Buchstabe.',
  locked: (time) =>
    `Zu viele falsche Codes. Der Hub sieht noch ${time} lang keinen Code an, auch den richtigen nicht; versuchen Sie es danach wieder. Eine Einmal-Adresse, die „latchkey setup-code“ zeigt, gilt auch jetzt.`,
  ended: 'Sie sind nicht mehr angemeldet. Melden Sie sich noch einmal an.',
  endedMeanwhile:
    'Sie sind nicht mehr angemeldet, deshalb wurde nichts geändert. Melden Sie sich an, dann sind Sie wieder auf der Seite, von der Sie kamen.',
  signedOut: 'Sie sind abgemeldet.',
  usedUp:
    'Diese Anmelde-Adresse wurde schon benutzt oder ist abgelaufen: jede gilt einmal, zehn Minuten lang. Geben Sie den Einrichtungscode ein, oder lassen Sie den Hub eine neue Adresse machen:',
  goingOn: 'Einen Moment',
  goOn: 'Weiter',
  foreign: {
    heading: 'Es wurde nichts geändert',
    text: 'Dieses Formular kam von einer fremden Seite oder aus der Zeit vor Ihrer letzten Anmeldung. Öffnen Sie die Seite neu und senden Sie es noch einmal.',
    link: 'Seite öffnen',
  },
  unreadable: {
    heading: 'Dieses Formular ist nicht lesbar',
    text: 'Es wurde nichts geändert. Öffnen Sie die Seite neu und senden Sie es noch einmal.',
  },
  seconds: (count) => (count === 1 ? 'Sekunde' : `${count} Sekunden`),
  minutes: (count) => (count === 1 ? 'Minute' : `${count} Minuten`),
};
