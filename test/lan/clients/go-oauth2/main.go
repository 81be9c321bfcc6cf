// Unmodified golang.org/x/oauth2: reads tasks as JSON from stdin, and writes the hub's response or the reason of a failure to
// stdout, as in client-protocol.ts. The CA is in SSL_CERT_FILE.
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
	Input      struct {
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
		var request task
		if err := in.Decode(&request); err == io.EOF {
			return
		} else if err != nil {
			log.Fatal(err)
		}
		if response, err := perform(request); err != nil {
			out.Encode(map[string]string{"failed": err.Error()})
		} else {
			out.Encode(map[string]interface{}{"response": response})
		}
	}
}

func perform(request task) (map[string]interface{}, error) {
	input := request.Input
	// The library does not read metadata: the endpoints are configured.
	tokenURL := input.Issuer + "/oauth/token"
	ctx := context.Background()
	secret := func(style oauth2.AuthStyle) oauth2.TokenSource {
		config := clientcredentials.Config{
			ClientID:     input.ClientID,
			ClientSecret: input.ClientSecret,
			TokenURL:     tokenURL,
			Scopes:       strings.Fields(input.Scope),
			AuthStyle:    style,
		}
		return config.TokenSource(ctx)
	}

	var source oauth2.TokenSource
	switch request.Capability {
	case "client_secret_basic":
		source = secret(oauth2.AuthStyleAutoDetect) // tries HTTP Basic first
	case "client_secret_post":
		source = secret(oauth2.AuthStyleInParams)
	case "refresh_token":
		config := oauth2.Config{
			ClientID:     input.ClientID,
			ClientSecret: input.ClientSecret,
			Endpoint:     oauth2.Endpoint{TokenURL: tokenURL},
		}
		source = config.TokenSource(ctx, &oauth2.Token{RefreshToken: input.RefreshToken})
	default:
		return nil, fmt.Errorf("the library has no %s", request.Capability)
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
