// Authorization code grant and refresh with unmodified golang.org/x/oauth2: it tries HTTP Basic first, and on any error
// repeats with the credentials in the body. Reads {base_url, frontend_url, client_id, client_secret, code} from each line of
// stdin, and writes a line for each: the members of the second token response, without the tokens, or {error}.
package main

import (
	"context"
	"encoding/json"
	"os"
	"time"

	"golang.org/x/oauth2"
)

type job struct {
	BaseURL      string `json:"base_url"`
	FrontendURL  string `json:"frontend_url"`
	ClientID     string `json:"client_id"`
	ClientSecret string `json:"client_secret"`
	Code         string `json:"code"`
}

func run(input job) (map[string]interface{}, error) {
	config := oauth2.Config{
		ClientID:     input.ClientID,
		ClientSecret: input.ClientSecret,
		RedirectURL:  input.BaseURL + "/external/oauth2helper/code/set/" + input.ClientID,
		Endpoint:     oauth2.Endpoint{AuthURL: input.FrontendURL + "/sso/authorize", TokenURL: input.FrontendURL + "/sso/token"},
	}
	first, err := config.Exchange(context.Background(), input.Code, oauth2.AccessTypeOffline)
	if err != nil {
		return nil, err
	}
	stale := *first
	stale.Expiry = time.Now().Add(-time.Hour)
	second, err := config.TokenSource(context.Background(), &stale).Token()
	if err != nil {
		return nil, err
	}
	response, err := config.Client(context.Background(), second).Get(input.BaseURL + "/api/whoami")
	if err != nil {
		return nil, err
	}
	response.Body.Close()
	return map[string]interface{}{
		"token_type": second.TokenType,
		"rotated":    second.AccessToken != first.AccessToken && second.RefreshToken != first.RefreshToken,
		"status":     response.StatusCode,
	}, nil
}

func main() {
	input, output := json.NewDecoder(os.Stdin), json.NewEncoder(os.Stdout)
	for {
		var next job
		if input.Decode(&next) != nil {
			return
		}
		result, err := run(next)
		if err != nil {
			result = map[string]interface{}{"error": err.Error()}
		}
		output.Encode(result)
	}
}
