// Authorization code grant and refresh with unmodified golang.org/x/oauth2: it tries HTTP Basic first, and on any error
// repeats with the credentials in the body. Reads {base_url, frontend_url, client_id, client_secret, code} from stdin,
// writes the members of the second token response, without the tokens.
package main

import (
	"context"
	"encoding/json"
	"log"
	"os"
	"time"

	"golang.org/x/oauth2"
)

func main() {
	var input struct {
		BaseURL      string `json:"base_url"`
		FrontendURL  string `json:"frontend_url"`
		ClientID     string `json:"client_id"`
		ClientSecret string `json:"client_secret"`
		Code         string `json:"code"`
	}
	if err := json.NewDecoder(os.Stdin).Decode(&input); err != nil {
		log.Fatal(err)
	}
	config := oauth2.Config{
		ClientID:     input.ClientID,
		ClientSecret: input.ClientSecret,
		RedirectURL:  input.BaseURL + "/external/oauth2helper/code/set/" + input.ClientID,
		Endpoint:     oauth2.Endpoint{AuthURL: input.FrontendURL + "/sso/authorize", TokenURL: input.FrontendURL + "/sso/token"},
	}
	first, err := config.Exchange(context.Background(), input.Code, oauth2.AccessTypeOffline)
	if err != nil {
		log.Fatal(err)
	}
	stale := *first
	stale.Expiry = time.Now().Add(-time.Hour)
	second, err := config.TokenSource(context.Background(), &stale).Token()
	if err != nil {
		log.Fatal(err)
	}
	response, err := config.Client(context.Background(), second).Get(input.BaseURL + "/api/whoami")
	if err != nil {
		log.Fatal(err)
	}
	json.NewEncoder(os.Stdout).Encode(map[string]interface{}{
		"token_type": second.TokenType,
		"rotated":    second.AccessToken != first.AccessToken && second.RefreshToken != first.RefreshToken,
		"status":     response.StatusCode,
	})
}
