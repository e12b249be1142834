"""What `hostler doctor` looks at. Looking changes nothing; what measuring makes is removed again."""
