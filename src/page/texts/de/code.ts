import type { code as english } from '../en/code.ts';

export const code: typeof english = {
  heading: 'Gerät verbinden',
  ask: 'Geben Sie den Code ein, den das Gerät zeigt: acht Buchstaben.',
  check: 'Machen Sie nur weiter, wenn Ihr Gerät diesen Code zeigt.',
  wrong: 'Kein Gerät wartet mit diesem Code.',
  wrongNext:
    'Vergleichen Sie ihn mit dem Gerät. Steht er dort schon länger, dann starten Sie die Kopplung am Gerät noch einmal.',
  label: 'Code',
  go: 'Weiter',
  confirm: (appliance) => `${appliance} verbinden?`,
  again: 'Bitte melden Sie sich noch einmal an.',
  portalDecides: 'Das Portal sagt, was es darf.',
  asksBefore: 'Es bittet um Zugang zu ',
  asksAfter: '.',
  comma: ', ',
  and: ' und ',
  compare: 'Machen Sie nur weiter, wenn das Gerät oder seine App diesen Code zeigt:',
  notYours: 'Ein anderer Code oder nicht Ihr Gerät? Dann schließen Sie diese Seite.',
  loginNext: 'Danach melden Sie sich am Portal an.',
  unreachable: 'Das Portal ist nicht erreichbar',
  unreachableText:
    'Der Hub erreicht es gerade nicht. Prüfen Sie, ob das Haus mit dem Internet verbunden ist; der Code bleibt gültig.',
  tryAgain: 'Noch einmal versuchen',
  newer: (appliance) => `${appliance} zeigt inzwischen einen anderen Code`,
  newerText:
    'Das Gerät hat seine Kopplung noch einmal begonnen. Haben Sie sich schon angemeldet, dann laden Sie diese Seite neu: Sie sagt, wie das ausging.',
  typeNew: 'Den neuen Code eingeben',
  tooManyOpen: 'Es laufen zu viele Kopplungen',
  tooManyOpenText:
    'Warten Sie ein paar Minuten, gehen Sie dann zurück und versuchen Sie es noch einmal; der Code bleibt gültig.',
  foreign: 'Das kam von einer anderen Website',
  foreignText: 'Öffnen Sie den Link am Gerät oder geben Sie seinen Code ein.',
  notForm: 'Das ist kein Formular',
  notFormText: 'Codes werden so angenommen, wie ein Formular sie sendet.',
  unreadable: 'Diese Adresse stimmt nicht',
  unreadableText: 'Öffnen Sie den Link am Gerät noch einmal oder geben Sie seinen Code ein.',
  typeCode: 'Code eingeben',
  tooManyWrong: 'Zu viele falsche Codes',
  tooManyWrongText: (seconds) => `Warten Sie ${seconds} s und geben Sie den Code dann noch einmal ein.`,
};
