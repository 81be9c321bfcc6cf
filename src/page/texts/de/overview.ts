import type * as english from '../en/overview.ts';

export const overview: typeof english.overview = {
  title: 'Übersicht',
  noAppliances: 'Es gibt noch keine Geräte.',
  oneConnected: (appliance) => `${appliance} ist verbunden.`,
  allConnected: (count) => (count === 2 ? 'Beide Geräte sind verbunden.' : `Alle ${count} Geräte sind verbunden.`),
  severalAppliances: (count) => `${count} Geräte`,
  headlines: {
    needsLogin: (about) => `Für ${about} ist eine neue Anmeldung am Portal nötig.`,
    needsApproval: (about, count) => `${about} ${waits(count)} auf Ihre Freigabe.`,
    clientRejected: (about) => `${about}: Das Portal akzeptiert die Zugangsdaten des Hubs nicht.`,
    needsAttention: (about) => `${about}: Hier ist etwas zu tun.`,
    notConnected: (about, count) => `${about} ${count === 1 ? 'ist' : 'sind'} noch nicht verbunden.`,
    waitsForLogin: (about, count) => `${about} ${waits(count)} darauf, dass sich jemand am Portal anmeldet.`,
    waitsForPortal: (about, count) => `${about} ${waits(count)} auf das Portal.`,
    waitsForAccess: (about, count) => `${about} ${waits(count)} auf einen neuen Zugang.`,
    notRefreshed: (about) => `${about}: Der Zugang konnte nicht erneuert werden; der Hub versucht es weiter.`,
    refused: (about, count) => `${about} ${count === 1 ? 'fragt' : 'fragen'} mit falschen Zugangsdaten.`,
    neverServed: (about, count) =>
      count === 1
        ? `${about} ist angemeldet, hat den Zugang aber noch nicht abgeholt.`
        : `${about} sind angemeldet, haben den Zugang aber noch nicht abgeholt.`,
    silent: (about, count) =>
      count === 1
        ? `${about} hat den Zugang seit mindestens einer Woche nicht abgeholt.`
        : `${about} haben den Zugang seit mindestens einer Woche nicht abgeholt.`,
  },
  needsRenewal: (login) => `Die Anmeldung „${login}“ muss erneuert werden.`,
  needsRenewalFor: (login, appliances) => `Die Anmeldung „${login}“ muss erneuert werden. Das betrifft ${appliances}.`,
  hubNeedsAttention: 'Am Hub selbst ist etwas zu tun.',
  hubWarning: 'Es gibt eine Warnung zum Hub.',
  hubConditions: 'Was zu tun ist',
  appliances: 'Geräte',
  addFirst: 'Fügen Sie das erste hinzu und verbinden Sie es dann.',
  connectAll: 'Alle verbinden',
  connectAllHint: 'Meist genügt an jedem Portal eine einzige Anmeldung.',
  connectByCode: 'Mit dem Code eines Geräts verbinden',
  scopeByPortal: 'legt das Portal fest',
  account: 'Konto',
  registered: 'Aufnahme angefragt',
  tokenCounts: 'Zugang abgeholt',
  tokens: (today, last14Days) => `${today} × heute, ${last14Days} × in 14 Tagen`,
  connect: 'Verbinden',
  connectAgain: 'Neu anmelden',
  showLink: 'Anmeldelink anzeigen',
  at: {
    connect: (portal) => `Mit „${portal}“ verbinden`,
    connectAgain: (portal) => `Bei „${portal}“ neu anmelden`,
    showLink: (portal) => `Anmeldelink von „${portal}“ anzeigen`,
  },
  decide: 'Erlauben oder ablehnen',
  approve: 'Freigeben',
  reject: 'Ablehnen',
  registration: 'Geräte, die aufgenommen werden möchten',
  registrationHint:
    'Manche Geräte können beim Hub anfragen, ob er sie aufnimmt. Erlauben Sie das für zehn Minuten: Jedes Gerät, das anfragt, erscheint hier und wartet auf Ihre Freigabe.',
  registrationOpen: 'Neue Geräte sind zugelassen. Das endet',
  registrationOpenHint:
    'Starten Sie jetzt die Einrichtung am Gerät. Es erscheint dann hier und wartet auf Ihre Freigabe.',
  severalRegistered: (count) =>
    `${count} Geräte haben angefragt, seit neue Geräte zugelassen sind. Vergleichen Sie die Codes: Geben Sie ein Gerät nur frei, wenn es denselben Code anzeigt wie diese Seite.`,
  openRegistration: 'Neue Geräte 10 Minuten lang zulassen',
  closeRegistration: 'Keine neuen Geräte mehr zulassen',
  about: 'Über diesen Hub',
  noticesSent:
    'Meldungen, zum Beispiel dass eine Anmeldung erneuert werden muss, werden auch verschickt, wie in der Konfiguration des Hubs eingetragen.',
  noticesHere:
    'Meldungen, zum Beispiel dass eine Anmeldung erneuert werden muss, erscheinen nur auf dieser Seite. Die Person, die den Hub betreut, kann sie auch verschicken lassen: docs/notices.md von Latchkey beschreibt, wie.',
  address: 'Adresse',
  noAddress: 'keine',
  siteHub: (name) => `Der Hub ${name}`,
  thisHub: 'dieser Hub',
  lastSeen: 'zuletzt gesehen',
  pin: 'Sicherheitscode, an dem Geräte diesen Hub erkennen; er ist nicht geheim',
};

function waits(count: number): string {
  return count === 1 ? 'wartet' : 'warten';
}
