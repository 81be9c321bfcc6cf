// Unmodified golang.org/x/oauth2: logs in with PKCE and nonce, refreshes, and gets access of its own. Prints what it got as
// JSON. The server logs its user in without a page. The CA is in SSL_CERT_FILE.
package main

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"io"
	"log"
	"net/http"
	"os"
	"strings"
	"time"

	"golang.org/x/oauth2"
	"golang.org/x/oauth2/clientcredentials"
)

func check[T any](value T, err error) T {
	if err != nil {
		log.Fatal(err)
	}
	return value
}

func get(client *http.Client, address string) map[string]interface{} {
	var body map[string]interface{}
	text := check(io.ReadAll(check(client.Get(address)).Body))
	if err := json.Unmarshal(text, &body); err != nil {
		log.Fatalf("%s: %s", address, text)
	}
	return body
}

func main() {
	ctx, issuer, api := context.Background(), os.Getenv("ISSUER"), os.Getenv("API")
	server := get(http.DefaultClient, issuer+"/.well-known/openid-configuration")
	config := oauth2.Config{
		ClientID:     os.Getenv("CLIENT_ID"),
		ClientSecret: os.Getenv("CLIENT_SECRET"),
		RedirectURL:  os.Getenv("REDIRECT_URI"),
		Scopes:       []string{"openid", "read"},
		Endpoint: oauth2.Endpoint{
			AuthURL:  server["authorization_endpoint"].(string),
			TokenURL: server["token_endpoint"].(string),
		},
	}
	verifier := strings.Repeat("verifier-", 6)
	hash := sha256.Sum256([]byte(verifier))
	address := config.AuthCodeURL("a state",
		oauth2.SetAuthURLParam("code_challenge", base64.RawURLEncoding.EncodeToString(hash[:])),
		oauth2.SetAuthURLParam("code_challenge_method", "S256"),
		oauth2.SetAuthURLParam("nonce", "a nonce"))
	browser := http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	landed := check(check(browser.Get(address)).Location()).Query()
	if landed.Get("state") != "a state" {
		log.Fatal("another state")
	}
	first := check(config.Exchange(ctx, landed.Get("code"), oauth2.SetAuthURLParam("code_verifier", verifier)))
	var claims map[string]interface{}
	payload := check(base64.RawURLEncoding.DecodeString(strings.Split(first.Extra("id_token").(string), ".")[1]))
	if err := json.Unmarshal(payload, &claims); err != nil {
		log.Fatal(err)
	}
	user := get(config.Client(ctx, first), server["userinfo_endpoint"].(string))
	renewed := check(config.TokenSource(ctx, &oauth2.Token{RefreshToken: first.RefreshToken, Expiry: time.Unix(1, 0)}).Token())
	credentials := clientcredentials.Config{
		ClientID: config.ClientID, ClientSecret: config.ClientSecret, TokenURL: config.Endpoint.TokenURL, Scopes: []string{"read"},
	}
	own := check(credentials.Token(ctx))
	check(0, json.NewEncoder(os.Stdout).Encode(map[string]interface{}{
		"user": claims["sub"], "nonce": claims["nonce"] == "a nonce", "userinfo": user["sub"],
		"called": []interface{}{get(config.Client(ctx, renewed), api), get(credentials.Client(ctx), api)},
		"tokens": []string{first.AccessToken, renewed.AccessToken, own.AccessToken},
	}))
}
