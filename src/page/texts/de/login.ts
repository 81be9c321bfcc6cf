import type * as english from '../en/login.ts';

export const code: typeof english.code = {
  heading: 'Gerät verbinden',
  enterCode: 'Geben Sie den Code ein, den das Gerät anzeigt: acht Buchstaben.',
  checkCode: 'Machen Sie nur weiter, wenn Ihr Gerät diese Seite geöffnet hat oder diesen Code anzeigt.',
  unknownCode: 'Zu diesem Code gibt es kein wartendes Gerät.',
  unknownCodeText:
    'Vergleichen Sie ihn mit dem Code auf dem Gerät. Wenn er dort schon länger angezeigt wird, starten Sie am Gerät einen neuen Verbindungsversuch.',
  label: 'Code',
  continueButton: 'Weiter',
  confirm: (appliance) => `${appliance} verbinden?`,
  confirmLogin: (appliance, login) => `${appliance} mit der Anmeldung „${login}“ verbinden?`,
  logInAgain: 'Melden Sie sich noch einmal am Portal an.',
  portalDecides: 'Was das Gerät darf, legt das Portal fest.',
  scopePrefix: 'Das Gerät möchte diese Berechtigungen: ',
  scopeSuffix: '.',
  comma: ', ',
  and: ' und ',
  compare: 'Machen Sie nur weiter, wenn das Gerät oder seine App diese Seite geöffnet hat oder diesen Code anzeigt:',
  compareToAllow:
    'Erlauben Sie es nur, wenn das Gerät oder seine App diese Seite geöffnet hat oder diesen Code anzeigt:',
  notYours: 'Ein anderer Code oder nicht Ihr Gerät? Dann schließen Sie diese Seite.',
  loginNext: 'Danach melden Sie sich am Portal an.',
  mayUse: (appliance, login) => `Darf ${appliance} die Anmeldung „${login}“ nutzen?`,
  mayUseOwn: (appliance) => `Darf ${appliance} die eigene Anmeldung wieder nutzen?`,
  signInToDecide:
    'Der Hub ist mit dieser Anmeldung schon verbunden, deshalb muss sich niemand am Portal anmelden. Um es zu erlauben, geben Sie auf der nächsten Seite den Einrichtungscode ein.',
  signIn: 'Weiter zum Einrichtungscode',
  loginInstead: 'Stattdessen am Portal anmelden',
  connectedAlready: 'Der Hub ist mit dieser Anmeldung schon verbunden, deshalb muss sich niemand am Portal anmelden.',
  allow: 'Erlauben',
  unreachableText:
    'Der Hub erreicht das Portal gerade nicht. Prüfen Sie die Internetverbindung im Haus. Der Code bleibt gültig.',
  tryAgain: 'Noch einmal versuchen',
  codeReplaced: (appliance) => `${appliance} zeigt jetzt einen anderen Code an`,
  codeReplacedText:
    'Das Gerät hat einen neuen Verbindungsversuch begonnen. Wenn Sie sich schon angemeldet haben, laden Sie diese Seite neu: Dann sehen Sie das Ergebnis.',
  typeNewCode: 'Neuen Code eingeben',
  typeCode: 'Code eingeben',
  tooManyAttempts: 'Zu viele falsche Codes',
  tooManyAttemptsText: (seconds) => `Warten Sie ${seconds} s und geben Sie den Code dann noch einmal ein.`,
};

export const portalCode: typeof english.portalCode = {
  heading: 'Das Portal fragt nach einem Code',
  text: 'Öffnen Sie das Portal und geben Sie dort diesen Code ein. Das Portal öffnet sich in einem neuen Tab, damit Sie zum Code zurückkehren können.',
  compareHeading: 'Das Portal zeigt einen Code',
  compare:
    'Öffnen Sie das Portal und machen Sie dort nur weiter, wenn es diesen Code zeigt. Das Portal öffnet sich in einem neuen Tab, damit Sie zum Code zurückkehren können.',
  notOfAppliance: 'Es ist nicht der Code, den das Gerät anzeigt.',
  logIn: (host) => `Bei ${host} anmelden`,
  after:
    'Nach der Anmeldung können Sie diese Seite schließen. Die Geräte holen sich ihren Zugang selbst; die Seite des Hubs zeigt, wann sie es getan haben.',
  afterInBatch: 'Machen Sie nach der Anmeldung auf der Seite des Hubs weiter.',
};

const LOST = 'Die Antwort des Portals ist nicht angekommen.';

export const result: typeof english.result = {
  connected: (appliances, count) => `${appliances} ${count === 1 ? 'ist' : 'sind'} verbunden`,
  connectedText:
    'Sie können diese Seite schließen. Die Geräte holen sich ihren Zugang selbst; die Seite des Hubs zeigt, wann sie es getan haben.',
  notConnectedYet: (appliances, count) => `${appliances} ${count === 1 ? 'ist' : 'sind'} noch nicht verbunden`,
  loginFailures: {
    code_refused: 'Das Portal hat diese Anmeldung nicht mehr akzeptiert, vielleicht weil sie zu lange gedauert hat.',
    answer_lost: LOST,
  },
  unconfirmed:
    'Das Portal hat dem Hub diese Anmeldung nicht bestätigt. Wenn Sie den Einrichtungscode haben, bestätigen Sie die Anmeldung innerhalb einer Minute auf der Seite des Hubs; sonst bitten Sie jemanden, der den Code hat. Diese Seite aktualisiert sich automatisch.',
  unconfirmedTooLate: 'Niemand hat diese Anmeldung rechtzeitig bestätigt.',
  reopenLink: 'Öffnen Sie den Anmeldelink noch einmal und melden Sie sich an.',
  useNewLink:
    'Der Hub erstellt einen neuen Link. Dieser erscheint dort, wo Sie den alten gefunden haben. Öffnen Sie den neuen Link und melden Sie sich noch einmal an.',
  connecting: (appliances, count) => `${appliances} ${count === 1 ? 'wird' : 'werden'} verbunden`,
  connectingText: 'Der Hub wartet auf das Portal. Diese Seite aktualisiert sich automatisch.',
  notConnected: (appliances, count) => `${appliances} ${count === 1 ? 'ist' : 'sind'} nicht verbunden`,
  reasons: {
    refused_by_user: 'Der Zugang wurde nicht erlaubt, oder das Portal hat ihn abgelehnt.',
    expired: 'Die Zeit für diese Anmeldung ist abgelaufen.',
    replaced: 'Ein neuerer Anmeldelink hat diesen ersetzt.',
    cancelled: 'Der Versuch wurde am Hub abgebrochen oder übersprungen.',
    portal_rejected: 'Das Portal hat die Anfrage des Hubs abgelehnt.',
    foreign_origin:
      'Das Portal hat eine Adresse geliefert, die nicht zu ihm gehört. Deshalb hat der Hub die Anmeldung abgebrochen.',
    code_refused: 'Das Portal hat die Anmeldung nicht akzeptiert.',
    answer_lost: LOST,
    misconfigured: 'Das Portal akzeptiert die Zugangsdaten des Hubs nicht (client_id und Client-Secret).',
    client_unknown: 'Das Portal kennt die client_id des Hubs nicht.',
  },
  nextSteps: {
    startOnAppliance: 'Starten Sie am Gerät einen neuen Verbindungsversuch.',
    startAtHub: 'Auf der Seite des Hubs können Sie es noch einmal versuchen.',
    ifAgain: 'Wenn das wieder passiert, prüfen Sie die Konfiguration des Hubs.',
    otherLink: 'Verwenden Sie den neueren Link.',
    checkConfiguration: 'Prüfen Sie die Konfiguration des Hubs.',
  },
  malformed: 'Diese Adresse ist ungültig',
  malformedText:
    'Das ist keine Adresse, die das Portal nach einer Anmeldung öffnet. Öffnen Sie den Anmeldelink noch einmal und melden Sie sich an.',
  noCode: 'Die Anmeldung ist nicht abgeschlossen',
  noCodeText:
    'Das Portal hat dem Hub keinen Code für diese Anmeldung gesendet. Öffnen Sie den Anmeldelink noch einmal und melden Sie sich an.',
  usedLink: 'Diese Anmeldung wurde schon verwendet',
  usedLinkText:
    'Jeder Anmeldelink gilt einmal. Öffnen Sie auf der Seite des Hubs den neuesten Link und melden Sie sich noch einmal an.',
  foreignIssuer: 'Diese Anmeldung kommt nicht vom Portal',
  foreignIssuerText:
    'Der Hub hat sie nicht verwendet. Öffnen Sie auf der Seite des Hubs den neuesten Link und melden Sie sich noch einmal an.',
  unknownLink: 'Dieser Link ist nicht mehr gültig',
  unknownLinkText:
    'Der Hub kennt diese Anmeldung nicht. Verbinden Sie das Gerät auf der Seite des Hubs noch einmal und öffnen Sie den neuen Link.',
};
