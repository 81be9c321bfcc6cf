package main

import (
	"context"
	"log"
	"net/http"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/oauth2"
)

func main() {
	file := filepath.Join(os.Getenv("STATE_DIR"), "refresh_token")
	config := oauth2.Config{
		ClientID:     os.Getenv("OAUTH_CLIENT_ID"),
		ClientSecret: os.Getenv("OAUTH_CLIENT_SECRET"),
		Endpoint:     oauth2.Endpoint{TokenURL: os.Getenv("OAUTH_TOKEN_ENDPOINT")},
	}
	token := &oauth2.Token{RefreshToken: os.Getenv("OAUTH_REFRESH_TOKEN")}
	if kept, err := os.ReadFile(file); err == nil {
		token.RefreshToken = string(kept)
	}
	for ; ; time.Sleep(time.Second) {
		fresh, err := config.TokenSource(context.Background(), token).Token()
		if err != nil {
			log.Print(err)
			continue
		}
		if token = fresh; os.WriteFile(file+".new", []byte(token.RefreshToken), 0o600) == nil {
			os.Rename(file+".new", file)
		}
		request, _ := http.NewRequest("GET", os.Getenv("API_URL"), nil)
		token.SetAuthHeader(request)
		if response, err := http.DefaultClient.Do(request); err == nil {
			response.Body.Close()
			if response.StatusCode == 401 {
				token.Expiry = time.Now()
			}
		}
	}
}
