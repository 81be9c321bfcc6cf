// golang.org/x/oauth2 as it is: the argument names the capability, what it is given comes on stdin as JSON, and what the hub
// said goes to stdout as JSON. The CA comes by SSL_CERT_FILE.
package main

import (
	"context"
	"encoding/json"
	"log"
	"math"
	"os"
	"strings"
	"time"

	"golang.org/x/oauth2"
	"golang.org/x/oauth2/clientcredentials"
)

func main() {
	var given struct {
		Issuer       string `json:"issuer"`
		ClientID     string `json:"client_id"`
		ClientSecret string `json:"client_secret"`
		Scope        string `json:"scope"`
		RefreshToken string `json:"refresh_token"`
	}
	if err := json.NewDecoder(os.Stdin).Decode(&given); err != nil {
		log.Fatal(err)
	}
	// The library knows no metadata: the addresses are set up in it.
	tokenURL := given.Issuer + "/oauth/token"
	ctx := context.Background()
	secret := func(style oauth2.AuthStyle) oauth2.TokenSource {
		config := clientcredentials.Config{
			ClientID:     given.ClientID,
			ClientSecret: given.ClientSecret,
			TokenURL:     tokenURL,
			Scopes:       strings.Fields(given.Scope),
			AuthStyle:    style,
		}
		return config.TokenSource(ctx)
	}

	var source oauth2.TokenSource
	switch os.Args[1] {
	case "client_secret_basic":
		source = secret(oauth2.AuthStyleAutoDetect) // tries HTTP Basic first
	case "client_secret_post":
		source = secret(oauth2.AuthStyleInParams)
	case "refresh_token":
		config := oauth2.Config{
			ClientID:     given.ClientID,
			ClientSecret: given.ClientSecret,
			Endpoint:     oauth2.Endpoint{TokenURL: tokenURL},
		}
		source = config.TokenSource(ctx, &oauth2.Token{RefreshToken: given.RefreshToken})
	default:
		log.Fatalf("the library has no %s", os.Args[1])
	}
	token, err := source.Token()
	if err != nil {
		log.Fatal(err)
	}
	json.NewEncoder(os.Stdout).Encode(map[string]interface{}{
		"access_token":  token.AccessToken,
		"refresh_token": token.RefreshToken,
		"token_type":    token.TokenType,
		"expires_in":    math.Round(time.Until(token.Expiry).Seconds()),
		"scope":         token.Extra("scope"),
	})
}
