"""The definition of a rule, the catalogue of all rules, and their manual pages."""
