"""What a rule is, the catalogue of all rules, and their manual pages."""
