import type * as english from '../en/health.ts';

export const states: typeof english.states = {
  kinds: {
    connected: 'Verbunden',
    held_up: 'Verbunden, aber Zugang nicht erneuert',
    interrupted: 'Unterbrochen',
    log_in_again: 'Neu anmelden',
    not_connected: 'Noch nicht verbunden',
    waiting_for_login: 'Wartet auf die Anmeldung',
    waiting_for_portal: 'Wartet auf das Portal',
    waiting_for_approval: 'Wartet auf Ihre Freigabe',
    not_used_yet: 'Angemeldet, aber noch nicht genutzt',
    refused: 'Angemeldet, fragt aber mit falschen Zugangsdaten',
  },
  fields: {
    version: 'Version',
    refreshIn: 'Nächste Erneuerung',
    lastRefresh: 'Zuletzt erneuert',
    loginEnds: 'Anmeldung endet',
    lastToken: 'Zuletzt Zugang abgeholt',
  },
  conditions: {
    portal_unreachable: () =>
      'Das Portal war nicht erreichbar. Prüfen Sie die Internetverbindung im Haus; der Hub versucht es weiter.',
    portal_deferred: () =>
      'Das Portal verlangt eine Wartezeit. Es ist nichts zu tun: Der Hub versucht es automatisch wieder.',
    portal_rejected: () =>
      'Das Portal hat die Anfrage des Hubs abgelehnt. Der Hub versucht es weiter. Wenn das so bleibt, prüfen Sie die Adresse des Portals in der Konfiguration und jede Firewall auf dem Weg.',
    answer_lost: () => 'Eine Antwort des Portals ist nicht angekommen. Der Hub versucht es automatisch wieder.',
    misconfigured: () => 'Das Portal akzeptiert die Zugangsdaten des Hubs nicht (client_id und Client-Secret).',
    clock_unknown: () =>
      'Der Hub kennt die richtige Uhrzeit noch nicht. Sobald er sie kennt, geht es automatisch weiter.',
    store_unwritable: () =>
      'Der Hub kann nichts speichern. Schaffen Sie Platz auf seinem Datenträger oder tauschen Sie die SD-Karte aus.',
    database_unavailable: () =>
      'Der Hub erreicht die Datenbank nicht, die er sich mit anderen Hubs teilt. Sobald er sie erreicht, geht es automatisch weiter.',
    refused: (appliance) =>
      `Das Portal hat den Zugang beendet. Melden Sie sich neu am Portal an, um ${appliance} zu verbinden.`,
    access_token_rejected: () =>
      'Ein Gerät meldet, dass das Portal seinen Zugang ablehnt. Es ist nichts zu tun: Der Hub holt einen neuen, aber höchstens einmal in der Minute. Lehnt das Portal auch diesen ab, prüfen Sie am Portal das Konto und seine Berechtigungen.',
    credentials_untried: () =>
      'Beim letzten Mal hat das Portal die Zugangsdaten des Hubs nicht akzeptiert (client_id und Client-Secret). Der Hub versucht es jetzt noch einmal damit. Noch ist nichts zu tun.',
    portal_changed: (appliance) =>
      `Seit der letzten Anmeldung für ${appliance} hat jemand in der Konfiguration des Hubs das Portal oder die client_id geändert. War das ein Versehen, machen Sie die Änderung rückgängig und führen Sie auf dem Hub „sudo latchkey reload“ aus. Sonst melden Sie sich neu am Portal an, um ${appliance} zu verbinden.`,
    portal_missing: (appliance) =>
      `Das Portal, an dem sich jemand für ${appliance} angemeldet hat, fehlt in der Konfiguration des Hubs. Fügen Sie es wieder hinzu; eine neue Anmeldung ist nicht nötig.`,
    grant_damaged: (appliance) =>
      `Der gespeicherte Zugang von ${appliance} wurde auf dem Datenträger des Hubs beschädigt. Melden Sie sich neu am Portal an.`,
    connection_damaged: (appliance) =>
      `Die gespeicherten Daten der Anmeldung für ${appliance} wurden auf dem Datenträger des Hubs beschädigt oder von jemandem geändert. Deshalb gibt der Hub damit keinen Zugang. Entfernen Sie diese Anmeldung auf dem Hub und melden Sie sich neu am Portal an.`,
    login_ending: (appliance) =>
      `Das Portal beendet diese Anmeldung bald, wie jede Anmeldung nach einiger Zeit. Melden Sie sich vorher neu an, damit die Verbindung von ${appliance} bestehen bleibt.`,
    permissions_missing: (appliance) =>
      `${appliance} ist verbunden, aber das Portal hat nicht alle angefragten Berechtigungen gewährt.`,
    approval_needed: (appliance) =>
      `${appliance} möchte aufgenommen werden. Geben Sie das Gerät nur frei, wenn es Ihres ist. Wenn es einen Code anzeigt, muss er mit dem Code hier übereinstimmen.`,
    not_paired: (appliance) => `Melden Sie sich einmal am Portal an, um ${appliance} zu verbinden.`,
    pairing_failed: (appliance) => `Der letzte Versuch, ${appliance} zu verbinden, ist fehlgeschlagen.`,
    login_open: (appliance) => `Jemand muss sich am Portal anmelden, um ${appliance} zu verbinden.`,
    portal_awaited: () =>
      'Es ist nichts zu tun: Der Hub fragt weiter an. Der Anmeldelink erscheint hier, sobald das Portal ihn sendet.',
    without_credentials: () =>
      'Der Hub hat kein Passwort mehr für dieses Gerät, deshalb bekommt es keinen Zugang. Tragen Sie das Gerät wieder in die Konfiguration ein oder erstellen Sie ein neues Passwort.',
    credentials_damaged: () =>
      'Die gespeicherten Daten dieses Geräts wurden auf dem Datenträger des Hubs beschädigt oder von jemandem geändert. Entfernen Sie das Gerät, fügen Sie es wieder hinzu und melden Sie sich neu am Portal an.',
    appliance_refused: (appliance) =>
      `Anfragen für ${appliance} kommen mit falscher Client-ID oder falschem Passwort und bekommen deshalb keinen Zugang. Geben Sie beides im Gerät neu ein. Ist das Passwort verloren, erstellen Sie auf der Seite des Geräts ein neues.`,
    appliance_never_served: (appliance) =>
      `${appliance} hat den Zugang noch nicht abgeholt. Geben Sie Client-ID, Passwort und Adresse im Gerät ein und schalten Sie das Gerät ein. Ist das Passwort verloren, erstellen Sie auf der Seite des Geräts unter „Mehr“ ein neues.`,
    appliance_silent: (appliance) =>
      `${appliance} hat seit mindestens einer Woche nicht nach dem Zugang gefragt. Prüfen Sie, ob das Gerät eingeschaltet ist. Wenn Sie es nicht mehr haben, entfernen Sie es.`,
    appliance_asks_often: (appliance) =>
      `${appliance} fragt viel öfter als nötig nach dem Zugang. Es ist nichts zu tun: Der Hub antwortet wie gewohnt.`,
  },
  neverServedOf: (appliance, connection) =>
    `${appliance} hat den Zugang zu ${connection} noch nicht abgeholt. Geben Sie in ${appliance} die Adresse für ${connection} ein. Wenn das Gerät ${connection} nicht braucht, wählen Sie auf der Seite des Geräts, welche es nutzt: „Mehr“, dann „Andere Anmeldungen nutzen“.`,
  corrections: {
    apply: {
      reload: 'führen Sie auf dem Hub „sudo latchkey reload“ aus',
      service_restart: 'starten Sie den Hub neu („sudo systemctl restart latchkey“)',
      app_restart: 'starten Sie die App in Home Assistant neu',
      new_start: 'beenden Sie den Hub und starten Sie ihn wieder',
    },
    enterAgain: 'Geben Sie die Client-ID und das Client-Secret dieses Portals neu ein.',
    clientId: (portal, apply) =>
      `Korrigieren Sie in der Konfiguration des Hubs portals.${portal}.client_id. Danach ${apply}.`,
    credentials: (portal, secretFile, apply) =>
      `Korrigieren Sie in der Konfiguration des Hubs portals.${portal}.client_id oder das Client-Secret${secretFile === undefined ? '' : ` (in ${secretFile})`}. Danach ${apply}.`,
  },
  allWell: 'Alles in Ordnung: Es ist nichts zu tun.',
  secretUnused: (appliance) =>
    `${appliance} hat noch nicht mit dem neuen Passwort gefragt. Tragen Sie es am Gerät ein.`,
  lastPairing: 'Letzter Verbindungsversuch',
  newLoginOpen: 'Eine neue Anmeldung läuft. Bis sie abgeschlossen ist, ändert sich nichts.',
  useRequested: 'Ein Gerät fragt, ob es diese Anmeldung nutzen darf.',
  ownUseRequested: (appliance) => `${appliance} fragt, ob es seine Anmeldung wieder nutzen darf.`,
  comparisonCode: 'Code',
  registrantAddress: 'IP-Adresse',
  softwareId: 'Programm',
  scopeChanged:
    'In der Konfiguration stehen jetzt andere Berechtigungen. Melden Sie sich neu am Portal an, damit sie gelten.',
  missingPermissions: (names) =>
    `Es fehlen: ${names}. Wenn sie gebraucht werden, melden Sie sich neu an und erlauben Sie sie.`,
  withoutRefreshToken:
    'Das Portal hat kein Refresh-Token gegeben, deshalb kann der Hub diesen Zugang nicht erneuern. Fügen Sie offline_access zu den Berechtigungen hinzu und melden Sie sich neu an.',
  problemSince: 'Störung aufgetreten',
  refusedRequests: 'Abgelehnte Anfragen',
  refusals: (count, address) => `${count} ×, von ${address}, seit`,
  neverServed: 'noch nicht',
  tokenExpires: 'Zugang läuft ab',
  hub: {
    certificate_expired:
      'Das Zertifikat des Hubs ist abgelaufen. Browser zeigen deshalb eine Warnung, und Geräte bekommen vielleicht keinen Zugang. Bitten Sie die Person, die die eigene Webadresse des Hubs eingerichtet hat, das Zertifikat zu erneuern.',
    certificate_expiring:
      'Das Zertifikat des Hubs läuft bald ab und wurde nicht automatisch erneuert. Bitten Sie die Person, die die eigene Webadresse des Hubs eingerichtet hat, das Zertifikat zu erneuern.',
    hub_id_taken:
      'In diesem Netzwerk gibt es einen anderen Hub mit derselben Kennung. Wenn eine SD-Karte kopiert wurde, schalten Sie einen der beiden aus.',
    hub_missing:
      'Ein anderer Hub dieser Anlage wurde seit einer Weile nicht gesehen. Prüfen Sie seine Stromversorgung und sein Netzwerk („Über diesen Hub“ unten führt die Hubs auf).',
    hub_name_claimed:
      'Ein anderes Gerät in diesem Netzwerk verwendet den Namen des Hubs. Ihre Geräte sind sicher, denn sie prüfen auch den Sicherheitscode des Hubs. Suchen Sie das andere Gerät („sudo latchkey status“ auf dem Hub zeigt seine Adresse), und benennen Sie es um oder trennen Sie es vom Netzwerk.',
    not_announced:
      'Geräte finden diesen Hub vielleicht nicht automatisch im Netzwerk. Prüfen Sie die Netzwerkverbindung des Hubs.',
    no_portal: 'Noch kein Portal gewählt.',
    client_rejected:
      'Ein Portal akzeptiert die eigenen Zugangsdaten des Hubs nicht (client_id und Client-Secret). Deshalb kann keine Anmeldung gelingen. Bitten Sie die Person, die den Hub eingerichtet hat, sie zu korrigieren: „sudo latchkey status“ auf dem Hub zeigt, wo.',
    portal_moved:
      'Ein Portal meldet, dass es eine neue Adresse hat. Bevor der Hub Ihren Zugang dorthin sendet, fragen Sie beim Portal nach, ob das stimmt. „sudo latchkey status“ auf dem Hub zeigt beide Adressen und wie Sie die neue bestätigen.',
    database_unavailable:
      'Der Hub erreicht die Datenbank nicht, die er sich mit anderen Hubs teilt. Verbundene Geräte behalten ihren Zugang, er wird aber nicht erneuert. Prüfen Sie den Datenbankserver und das Netzwerk; danach geht es automatisch weiter.',
    store_changed:
      'Gespeicherte Daten des Hubs wurden beschädigt oder von jemandem geändert. Prüfen Sie die Geräte: Entfernen Sie jedes, das keinen Zugang bekommt, und fügen Sie es wieder hinzu.',
    store_recovered:
      'Die gespeicherten Daten des Hubs waren beschädigt oder fehlten und wurden aus einer Kopie wiederhergestellt. Prüfen Sie unten, ob alle Geräte verbunden sind. Wenn niemand gerade eine Sicherung eingespielt hat, tauschen Sie die SD-Karte bald aus.',
    store_slow:
      'Die SD-Karte des Hubs ist sehr langsam, wie oft vor einem Ausfall. Erstellen Sie jetzt eine Sicherung („sudo latchkey backup DATEI“ auf dem Hub) und tauschen Sie dann die Karte aus.',
    store_volatile:
      'Nichts, was der Hub speichert, übersteht einen Neustart des Rechners: Danach müssen alle Geräte neu verbunden werden. Bitten Sie die Person, die den Hub eingerichtet hat, das „Overlay File System“ auszuschalten („sudo raspi-config“ auf dem Hub, unter Performance Options).',
    store_unwritable:
      'Der Hub kann nichts speichern. Schaffen Sie Platz auf seinem Datenträger oder tauschen Sie die SD-Karte aus.',
    wrong_setup_codes:
      'Jemand hat auf dieser Seite falsche Einrichtungscodes eingegeben. Wenn Sie das nicht waren, suchen Sie das Gerät, von dem das kam, und trennen Sie es von Ihrem Netzwerk.',
  },
  deviceAddress: (address) => `Die Adresse des Geräts ist ${address}.`,
  notices: {
    hub: 'Der Hub',
    over: (about) => `${about}: Das ist erledigt`,
    test: 'Das ist ein Test: Meldungen dieses Hubs kommen hier an',
    open: (url) => `Siehe ${url}`,
    nothing: 'Nichts',
  },
  warnings: {
    token_ending: (appliance) =>
      `Der Zugang von ${appliance} läuft bald ab, weil der Hub ihn nicht erneuern konnte. Ob Sie etwas tun können, steht darunter.`,
    refresh_failing: () => 'Der Zugang wurde seit einem Tag nicht erneuert.',
  },
};
