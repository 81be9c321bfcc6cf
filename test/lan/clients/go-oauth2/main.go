// golang.org/x/oauth2 as it is: tasks come on stdin as JSON, and what the hub said or why a task has failed goes to stdout, as
// conversation.ts has them. The CA comes by SSL_CERT_FILE.
package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log"
	"math"
	"os"
	"strings"
	"time"

	"golang.org/x/oauth2"
	"golang.org/x/oauth2/clientcredentials"
)

type task struct {
	Capability string
	Given      struct {
		Issuer       string `json:"issuer"`
		ClientID     string `json:"client_id"`
		ClientSecret string `json:"client_secret"`
		Scope        string `json:"scope"`
		RefreshToken string `json:"refresh_token"`
	}
}

func main() {
	in, out := json.NewDecoder(os.Stdin), json.NewEncoder(os.Stdout)
	for {
		var asked task
		if err := in.Decode(&asked); err == io.EOF {
			return
		} else if err != nil {
			log.Fatal(err)
		}
		if said, err := perform(asked); err != nil {
			out.Encode(map[string]string{"failed": err.Error()})
		} else {
			out.Encode(map[string]interface{}{"said": said})
		}
	}
}

func perform(asked task) (map[string]interface{}, error) {
	given := asked.Given
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
	switch asked.Capability {
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
		return nil, fmt.Errorf("the library has no %s", asked.Capability)
	}
	token, err := source.Token()
	if err != nil {
		return nil, err
	}
	return map[string]interface{}{
		"access_token":  token.AccessToken,
		"refresh_token": token.RefreshToken,
		"token_type":    token.TokenType,
		"expires_in":    math.Round(time.Until(token.Expiry).Seconds()),
		"scope":         token.Extra("scope"),
	}, nil
}
