// SPDX-License-Identifier: Apache-2.0

// Command server stands in for the collector in this package's own tests. It
// listens on the address given, answers GET / with the memory.max of the
// cgroup it runs in and POST / with what it received, and stops on SIGTERM.
package main

import (
	"context"
	"fmt"
	"io"
	"log"
	"net/http"
	"os"
	"os/signal"
	"strings"
	"syscall"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()

	mux := http.NewServeMux()
	mux.HandleFunc("GET /", limit)
	mux.HandleFunc("POST /", receive)
	server := &http.Server{Addr: os.Args[1], Handler: mux}

	stopped := make(chan error, 1)
	go func() {
		<-ctx.Done()
		stopped <- server.Shutdown(context.Background())
	}()
	if err := server.ListenAndServe(); err != http.ErrServerClosed {
		log.Fatal(err)
	}
	if err := <-stopped; err != nil {
		log.Fatal(err)
	}
	fmt.Println("server: stopped")
}

func limit(w http.ResponseWriter, _ *http.Request) {
	self, err := os.ReadFile("/proc/self/cgroup")
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	path := strings.TrimPrefix(strings.TrimSpace(string(self)), "0::")
	limit, err := os.ReadFile("/sys/fs/cgroup" + path + "/memory.max")
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	w.Write(limit)
}

func receive(w http.ResponseWriter, r *http.Request) {
	n, err := io.Copy(io.Discard, r.Body)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	fmt.Fprintf(w, "%d bytes of %s\n", n, r.Header.Get("Content-Type"))
}
