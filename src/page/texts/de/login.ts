import type * as english from '../en/login.ts';

export const userCode: typeof english.userCode = {
  heading: 'Gerät verbinden',
  enterCode: 'Geben Sie den Code ein, den das Gerät zeigt: acht Buchstaben.',
  checkCode: 'Machen Sie nur weiter, wenn Ihr Gerät diesen Code zeigt.',
  unknownCode: 'Kein Gerät wartet mit diesem Code.',
  unknownCodeText:
    'Vergleichen Sie ihn mit dem Gerät. Steht er dort schon länger, dann starten Sie die Kopplung am Gerät noch einmal.',
  label: 'Code',
  continueButton: 'Weiter',
  confirm: (appliance) => `${appliance} verbinden?`,
  logInAgain: 'Bitte melden Sie sich noch einmal an.',
  portalDecides: 'Das Portal sagt, was es darf.',
  scopePrefix: 'Es bittet um Zugang zu ',
  scopeSuffix: '.',
  comma: ', ',
  and: ' und ',
  compare: 'Machen Sie nur weiter, wenn das Gerät oder seine App diesen Code zeigt:',
  notYours: 'Ein anderer Code oder nicht Ihr Gerät? Dann schließen Sie diese Seite.',
  loginNext: 'Danach melden Sie sich am Portal an.',
  unreachable: 'Das Portal ist nicht erreichbar',
  unreachableText:
    'Der Hub erreicht es gerade nicht. Prüfen Sie, ob das Haus mit dem Internet verbunden ist; der Code bleibt gültig.',
  tryAgain: 'Noch einmal versuchen',
  codeReplaced: (appliance) => `${appliance} zeigt inzwischen einen anderen Code`,
  codeReplacedText:
    'Das Gerät hat seine Kopplung noch einmal begonnen. Haben Sie sich schon angemeldet, dann laden Sie diese Seite neu: Sie sagt, wie das ausging.',
  typeNewCode: 'Den neuen Code eingeben',
  tooManyPairings: 'Es laufen zu viele Kopplungen',
  tooManyPairingsText:
    'Warten Sie ein paar Minuten, gehen Sie dann zurück und versuchen Sie es noch einmal; der Code bleibt gültig.',
  crossSite: 'Das kam von einer anderen Website',
  crossSiteText: 'Öffnen Sie den Link am Gerät oder geben Sie seinen Code ein.',
  notAForm: 'Das ist kein Formular',
  notAFormText: 'Codes werden so angenommen, wie ein Formular sie sendet.',
  malformedRequest: 'Diese Adresse stimmt nicht',
  malformedRequestText: 'Öffnen Sie den Link am Gerät noch einmal oder geben Sie seinen Code ein.',
  typeCode: 'Code eingeben',
  tooManyAttempts: 'Zu viele falsche Codes',
  tooManyAttemptsText: (seconds) => `Warten Sie ${seconds} s und geben Sie den Code dann noch einmal ein.`,
};

const LOST = 'Die Antwort des Portals ging unterwegs verloren.';

export const loginResult: typeof english.loginResult = {
  connected: (appliance) => `${appliance} ist verbunden`,
  connectedText: 'Sie können diese Seite schließen. Um alles Weitere kümmert sich der Hub.',
  notConnectedYet: (appliance) => `${appliance} ist noch nicht verbunden`,
  loginFailures: {
    code_refused: 'Das Portal hat diese Anmeldung nicht mehr angenommen, vielleicht weil sie zu lange gedauert hat.',
    answer_lost: LOST,
  },
  unconfirmed:
    'Das Portal hat dem Hub diese Anmeldung nicht bestätigt. Wer sich um den Hub kümmert, kann sie binnen einer Minute auf der Seite des Hubs bestätigen. Diese Seite sieht von selbst wieder nach.',
  unconfirmedTooLate: 'Niemand hat diese Anmeldung rechtzeitig bestätigt.',
  reopenLink: 'Öffnen Sie den Link der Kopplung noch einmal und melden Sie sich erneut an.',
  useNewLink: 'Der Hub erstellt einen neuen Link: Öffnen Sie diesen und melden Sie sich noch einmal an.',
  connecting: (appliance) => `${appliance} wird verbunden`,
  connectingText: 'Der Hub wartet auf das Portal. Diese Seite sieht von selbst wieder nach.',
  notConnected: (appliance) => `${appliance} ist nicht verbunden`,
  reasons: {
    refused_by_user: 'Der Zugang wurde am Portal abgelehnt.',
    expired: 'Die Zeit für diese Kopplung ist abgelaufen.',
    replaced: 'Inzwischen wurde eine neuere Kopplung begonnen.',
    cancelled: 'Die Kopplung wurde am Hub abgebrochen.',
    portal_rejected: 'Das Portal hat die Kopplung zurückgewiesen.',
    foreign_origin: 'Das Portal hat eine Adresse genannt, die nicht seine eigene ist. Deshalb hat der Hub aufgehört.',
    code_refused: 'Das Portal hat die Anmeldung nicht angenommen.',
    answer_lost: LOST,
    misconfigured: 'Das Portal nimmt client_id und Client-Geheimnis des Hubs nicht an.',
    client_unknown: 'Das Portal kennt diese client_id nicht.',
  },
  nextSteps: {
    startOnAppliance: 'Starten Sie die Kopplung am Gerät noch einmal.',
    startAtHub: 'Starten Sie am Hub eine neue Kopplung.',
    ifAgain: 'Geschieht das wieder, dann prüfen Sie die Konfiguration des Hubs.',
    otherLink: 'Verwenden Sie den Link der neueren.',
    checkConfiguration: 'Prüfen Sie die Konfiguration des Hubs.',
  },
  malformed: 'Diese Adresse stimmt nicht',
  malformedText:
    'So kommt niemand nach einer Anmeldung vom Portal zurück. Öffnen Sie den Link der Kopplung noch einmal und melden Sie sich erneut an.',
  noCode: 'Die Anmeldung ist nicht abgeschlossen',
  noCodeText:
    'Das Portal hat keinen Code mitgeschickt. Öffnen Sie den Link der Kopplung noch einmal und melden Sie sich an.',
  unknownLink: 'Dieser Link gilt nicht mehr',
  unknownLinkText: 'Der Hub weiß nichts von dieser Kopplung. Starten Sie am Hub eine neue und öffnen Sie deren Link.',
};
