"""The pytest plug-in (manual: pytest). At its start pytest loads `plugin`; all else is imported when it is used."""
