// Client credentials grant with golang.org/x/oauth2/clientcredentials as it is. Reads {hub, client_id, client_secret,
// api, authentication, scope} from stdin and writes {expires_in, scope, user}. The CA comes by SSL_CERT_FILE.
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
		Hub            string `json:"hub"`
		ClientID       string `json:"client_id"`
		ClientSecret   string `json:"client_secret"`
		API            string `json:"api"`
		Authentication string `json:"authentication"`
		Scope          string `json:"scope"`
	}
	if err := json.NewDecoder(os.Stdin).Decode(&given); err != nil {
		log.Fatal(err)
	}
	style := oauth2.AuthStyleAutoDetect // tries HTTP Basic first
	if given.Authentication == "post" {
		style = oauth2.AuthStyleInParams
	}
	config := clientcredentials.Config{
		ClientID:     given.ClientID,
		ClientSecret: given.ClientSecret,
		TokenURL:     given.Hub + "/oauth/token",
		Scopes:       strings.Fields(given.Scope),
		AuthStyle:    style,
	}
	token, err := config.Token(context.Background())
	if err != nil {
		log.Fatal(err)
	}
	response, err := oauth2.NewClient(context.Background(), oauth2.StaticTokenSource(token)).Get(given.API + "/api/whoami")
	if err != nil {
		log.Fatal(err)
	}
	var answer struct {
		User string `json:"user"`
	}
	if err := json.NewDecoder(response.Body).Decode(&answer); err != nil {
		log.Fatal(err)
	}
	json.NewEncoder(os.Stdout).Encode(map[string]interface{}{
		"expires_in": math.Round(time.Until(token.Expiry).Seconds()),
		"scope":      token.Extra("scope"),
		"user":       answer.User,
	})
}
