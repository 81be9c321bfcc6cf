import type * as english from '../en/portal.ts';

export const portal: typeof english.portal = {
  choose: 'Wählen Sie Ihre Cloud',
  chooseText: 'Wo haben die Geräte dieses Hauses ihr Konto? Der Hub meldet sich dort für sie an.',
  chooseAnother: 'Weitere Cloud hinzufügen',
  untried: 'Diese Clouds kennt der Hub aus öffentlichen Quellen; keine davon ist erprobt.',
  helper: 'Ein Portal mit zwei Adressen',
  helperText: 'Sein Betreiber hat Ihnen zwei Web-Adressen, eine Client-ID und ein Client-Secret gegeben.',
  other: 'Eine andere Cloud',
  otherText: 'Jede Cloud mit OAuth 2.0, deren Adresse (Issuer) Sie kennen.',
  manage: 'Ihre Clouds',
  addHeading: (cloud) => `${cloud} hinzufügen`,
  againHeading: (cloud) => `Daten von ${cloud} neu eingeben`,
  nothingToRegister: 'Bei dieser Cloud müssen Sie nichts registrieren.',
  registerHeading: 'Zuerst bei der Cloud',
  registerAt: 'Seite der Cloud öffnen',
  redirect: 'Rückkehr-Adresse',
  redirectHint: 'Tragen Sie genau diese Adresse bei der Cloud als „Redirect URI“ ein.',
  redirectOwnHint:
    'Tragen Sie genau diese Adresse bei der Cloud als „Redirect URI“ ein. Nimmt die Cloud sie nicht an, tragen Sie hier und dort eine andere ein, zum Beispiel die Ihrer Relay-Seite.',
  enterHeading: 'Dann hier',
  baseUrl: 'Erste Adresse (Base URL)',
  frontendUrl: 'Zweite Adresse (Frontend URL)',
  addressHint: 'Sie beginnt mit https und kommt vom Betreiber des Portals.',
  issuer: 'Adresse der Cloud (Issuer)',
  clientId: 'Client-ID',
  clientSecret: 'Client-Secret',
  secretHint: 'Der Hub speichert es verschlüsselt und zeigt es nie wieder.',
  secretOptionalHint:
    'Kann leer bleiben, wenn die Cloud Ihnen keines gegeben hat. Der Hub speichert es verschlüsselt und zeigt es nie wieder.',
  variableHint: (description) => `Auf Englisch beschrieben: ${description}.`,
  add: 'Prüfen und hinzufügen',
  missing: 'Das fehlt.',
  invalid: 'Das ist nicht gültig. Vergleichen Sie es mit dem, was Sie von der Cloud bekommen haben.',
  rejected:
    'Die Cloud nimmt diese Client-ID mit diesem Client-Secret nicht an. Vergleichen Sie beide. Es wurde nichts gespeichert.',
  added: (cloud) => `${cloud} ist hinzugefügt`,
  accepted: 'Die Cloud nimmt den Hub an.',
  unreachable:
    'Die Cloud war nicht erreichbar, deshalb wurden die Daten nicht geprüft. Prüfen Sie die Internetverbindung dieses Hauses.',
  unchecked: 'Die Cloud war erreichbar. Ob Client-ID und Client-Secret stimmen, zeigt erst die erste Anmeldung.',
  login: 'So melden Sie sich an',
  logins: {
    device: 'mit einem Code',
    redirect: 'mit einem Link',
    paste: 'mit einem Link; danach fügen Sie die Adresse ein, auf der der Browser endet',
    poll: 'mit einem Link',
  },
  loginUnknown: 'noch nicht bekannt, bis die Cloud erreicht ist',
  declared:
    'Diese Cloud ist in der Konfigurationsdatei des Hubs eingetragen. Um sie zu ändern oder zu entfernen, bearbeiten Sie diese Datei.',
  again: 'Neu eingeben',
  removeHeading: (cloud) => `${cloud} entfernen?`,
  removeText: 'Der Hub löscht die Client-ID und das Client-Secret dieser Cloud.',
  failures: {
    portal_declared: 'Diese Cloud ist in der Konfigurationsdatei des Hubs eingetragen und lässt sich nur dort ändern.',
    portal_exists: 'Jemand hat diese Cloud gerade hinzugefügt. Gehen Sie zurück, um sie zu sehen.',
    portal_in_use:
      'An dieser Cloud sind noch Geräte angemeldet. Entfernen Sie zuerst diese Geräte und ihre Anmeldungen.',
    portal_unknown: 'Jemand hat diese Cloud entfernt.',
  },
};
