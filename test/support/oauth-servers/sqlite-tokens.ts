import Database from 'better-sqlite3';

/**
 * Counts and revokes the refresh tokens in a server's database while the server runs. The database must be in WAL mode:
 * then a look into it never blocks the server.
 * @param sql a query with the number of refresh tokens that were not used, and a statement that revokes all
 */
export function tokensInDatabase(file: string, sql: { readonly count: string; readonly revoke: string }) {
  function withDatabase<Result>(use: (database: Database.Database) => Result): Result {
    const database = new Database(file, { fileMustExist: true });
    try {
      return use(database);
    } finally {
      database.close();
    }
  }
  return {
    async countRefreshTokens() {
      return Number(withDatabase((database) => database.prepare(sql.count).pluck().get()));
    },
    async revokeRefreshTokens() {
      withDatabase((database) => database.exec(sql.revoke));
    },
  };
}
