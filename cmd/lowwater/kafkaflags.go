package main

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/sasl"
	"github.com/twmb/franz-go/pkg/sasl/plain"
	"github.com/twmb/franz-go/pkg/sasl/scram"
)

// kafkaFlags say how to reach a Kafka. Secrets come from files only, so that they are in
// no process list, and are never printed.
type kafkaFlags struct {
	Brokers          []string `placeholder:"HOST:PORT" help:"The Kafka to read from."`
	KafkaTLS         bool     `name:"kafka-tls" help:"Connect to Kafka with TLS."`
	KafkaCA          string   `name:"kafka-ca" placeholder:"FILE" help:"Trust the certificates in this PEM file; implies --kafka-tls."`
	KafkaSASL        string   `name:"kafka-sasl" enum:",plain,scram-sha-256,scram-sha-512" default:"" placeholder:"MECHANISM" help:"Authenticate by plain, scram-sha-256 or scram-sha-512."`
	KafkaUser        string   `name:"kafka-user" placeholder:"NAME" help:"The user for --kafka-sasl."`
	KafkaPasswordVia string   `name:"kafka-password-file" placeholder:"FILE" help:"A file that holds the password for --kafka-sasl."`
}

func (k *kafkaFlags) validate(required bool) error {
	switch {
	case required && len(k.Brokers) == 0:
		return errors.New("--brokers is missing: host:port of a Kafka broker")
	case k.KafkaSASL != "" && (k.KafkaUser == "" || k.KafkaPasswordVia == ""):
		return errors.New("--kafka-sasl needs --kafka-user and --kafka-password-file")
	case k.KafkaSASL == "" && (k.KafkaUser != "" || k.KafkaPasswordVia != ""):
		return errors.New("--kafka-user and --kafka-password-file need --kafka-sasl")
	}
	return nil
}

// options returns what a client needs.
func (k *kafkaFlags) options() ([]kgo.Opt, error) {
	opts := []kgo.Opt{kgo.SeedBrokers(k.Brokers...), kgo.ClientID("lowwater"), kgo.RetryTimeout(10 * time.Second)}
	if k.KafkaTLS || k.KafkaCA != "" {
		config, err := tlsConfig(k.KafkaCA)
		if err != nil {
			return nil, fmt.Errorf("--kafka-ca: %w", err)
		}
		opts = append(opts, kgo.DialTLSConfig(config))
	}
	if k.KafkaSASL != "" {
		password, err := readSecret(k.KafkaPasswordVia)
		if err != nil {
			return nil, fmt.Errorf("--kafka-password-file: %w", err)
		}
		opts = append(opts, kgo.SASL(mechanism(k.KafkaSASL, k.KafkaUser, password)))
	}
	if err := kgo.ValidateOpts(opts...); err != nil {
		return nil, fmt.Errorf("--brokers: %w", err)
	}
	return opts, nil
}

func mechanism(name, user, password string) sasl.Mechanism {
	switch name {
	case "scram-sha-256":
		return scram.Auth{User: user, Pass: password}.AsSha256Mechanism()
	case "scram-sha-512":
		return scram.Auth{User: user, Pass: password}.AsSha512Mechanism()
	default:
		return plain.Auth{User: user, Pass: password}.AsMechanism()
	}
}

// tlsConfig trusts the certificates in a file besides the system's; without one, those.
func tlsConfig(caFile string) (*tls.Config, error) {
	config := &tls.Config{MinVersion: tls.VersionTLS12}
	if caFile == "" {
		return config, nil
	}
	pem, err := os.ReadFile(caFile)
	if err != nil {
		return nil, err
	}
	pool, err := x509.SystemCertPool()
	if err != nil {
		pool = x509.NewCertPool()
	}
	if !pool.AppendCertsFromPEM(pem) {
		return nil, fmt.Errorf("%s holds no certificate in PEM form", caFile)
	}
	config.RootCAs = pool
	return config, nil
}

// readSecret returns the first line of a file.
func readSecret(name string) (string, error) {
	content, err := os.ReadFile(name)
	if err != nil {
		return "", err
	}
	line, _, _ := strings.Cut(string(content), "\n")
	if line = strings.TrimSpace(line); line == "" {
		return "", fmt.Errorf("%s is empty", name)
	}
	return line, nil
}
