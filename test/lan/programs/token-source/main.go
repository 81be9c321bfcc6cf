// What evcc's plugin "http" does with the token source "clientcredentials" (plugin/auth/clientcredentials.go): asks a URL
// once a second, through an oauth2.Transport. Arguments: the URL, client_id, client_secret, token URL.
package main

import (
	"context"
	"io"
	"log"
	"net/http"
	"os"
	"time"

	"golang.org/x/oauth2"
	"golang.org/x/oauth2/clientcredentials"
)

func main() {
	config := clientcredentials.Config{ClientID: os.Args[2], ClientSecret: os.Args[3], TokenURL: os.Args[4]}
	client := http.Client{
		Transport: &oauth2.Transport{Source: config.TokenSource(context.Background())},
		Timeout:   10 * time.Second,
	}
	for ; ; time.Sleep(time.Second) {
		answer, err := client.Get(os.Args[1])
		if err != nil {
			log.Print(err)
			continue
		}
		io.Copy(os.Stdout, answer.Body)
		answer.Body.Close()
	}
}
